// Package emulate stands between ssdio and a real folder and makes it slower or
// less reliable than it is: a limit in bytes per second, latency, jitter, a hub
// shared with other drives, and faults by script. All fault tests and the
// what-if runs use it; from the command line it is reached with specifications
// such as
//
//	/mnt/a,limit=710MB/s,latency=80us,hub=left:1GB/s,fault=flip/after=10/count=1
//
// [ParseSpec] documents the form. A [Fleet] opens several drives that share
// their hubs:
//
//	var fleet emulate.Fleet
//	drive, err := fleet.Open("/mnt/a,limit=710MB/s", nil)
//
// The limit is a queue of one server: a read begins when the one before it is
// through and takes length/limit, so a drive that is kept busy gives exactly
// its limit, whatever the number of readers. Latency and jitter delay the answer
// and not the next read. Waiting uses the time package, so in a synctest bubble
// time is virtual and in a benchmark it is real.
//
// The bytes always come from the files below. An emulated drive is never faster
// than the real one: where it is to show the speed of four drives, the files
// must be on something at least as fast, such as a memory file system, and
// reports must say that drives were emulated (ssdio.Drive.Emulated).
//
// The package never writes, and its faults never touch the files.
package emulate
