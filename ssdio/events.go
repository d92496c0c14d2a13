package ssdio

import "time"

// A Listener gets told what happens besides plain success. Every field may be
// nil. Functions are called on the goroutine that noticed (a worker, the
// watcher, a prober, or the caller of Open), several at once, with no lock
// held. They must not block and must not call into the Set except for Counters:
// a worker that waits in a listener is a worker that does not read.
//
// Order between goroutines is not defined. Everything told here is counted in
// [Counters] too.
type Listener struct {
	// Buffered: a file could only be opened through the page cache. Told once
	// for each drive.
	Buffered func(BufferedInfo)
	// ReadFailed: one read of a slice failed or its check did; it will be tried
	// again if anyone is left to ask.
	ReadFailed func(ReadFailedInfo)
	// RequestFailed: a request failed for good.
	RequestFailed func(RequestFailedInfo)
	// Hedged: a slice is late and was also asked of other holders.
	Hedged func(HedgedInfo)
	// DriveLost: a drive was given up for now.
	DriveLost func(DriveLostInfo)
	// DriveBack: a lost drive answers again.
	DriveBack func(DriveBackInfo)
}

// BufferedInfo: see Listener.Buffered.
type BufferedInfo struct {
	Drive string
	File  string
}

// ReadFailedInfo: see Listener.ReadFailed.
type ReadFailedInfo struct {
	Key    Key
	Drive  string
	File   string
	Offset int64 // in the file
	Length int64
	Err    error // wraps ErrChecksum if the bytes arrived but were wrong
	Final  bool  // nobody is left to ask
}

// RequestFailedInfo: see Listener.RequestFailed.
type RequestFailedInfo struct {
	Key Key
	Err error
}

// HedgedInfo: see Listener.Hedged.
type HedgedInfo struct {
	Key    Key
	Drive  string // the late one
	Length int64
	After  time.Duration
}

// DriveLostInfo: see Listener.DriveLost.
type DriveLostInfo struct {
	Drive string
	Err   error // ErrGone, ErrStalled or the last read error
}

// DriveBackInfo: see Listener.DriveBack.
type DriveBackInfo struct {
	Drive string
	Away  time.Duration
}

// ensure fills the functions that are nil.
func (l Listener) ensure() Listener {
	if l.Buffered == nil {
		l.Buffered = func(BufferedInfo) {}
	}
	if l.ReadFailed == nil {
		l.ReadFailed = func(ReadFailedInfo) {}
	}
	if l.RequestFailed == nil {
		l.RequestFailed = func(RequestFailedInfo) {}
	}
	if l.Hedged == nil {
		l.Hedged = func(HedgedInfo) {}
	}
	if l.DriveLost == nil {
		l.DriveLost = func(DriveLostInfo) {}
	}
	if l.DriveBack == nil {
		l.DriveBack = func(DriveBackInfo) {}
	}
	return l
}
