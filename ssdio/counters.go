package ssdio

import (
	"sync/atomic"
	"time"
)

// DriveCounters are the counters of one drive, or of all together. All but the
// gauges only grow; Sub gives what happened between two readings.
type DriveCounters struct {
	Name     string
	Emulated string  // specification of an emulated drive, "" for a plain one
	Ceiling  float64 // measured ceiling in bytes per second, 0 if not measured; total: the sum

	// Bytes by fate. Read = Useful + Wasted + what requests in progress hold.
	Read    int64 // arrived from the drive and asked for by a slice
	Useful  int64 // went into requests that succeeded
	Wasted  int64 // arrived for nothing: cancelled, lost a hedge, failed a check
	Hedged  int64 // asked for because this drive's slices were late elsewhere too
	Copied  int64 // went through a bounce buffer or a spare slot
	Checked int64 // compared with a known sum
	Noted   int64 // sum recorded, nothing to compare with yet

	Reads     int64 // slices that came back
	Requests  int64 // total only: requests that succeeded
	Failed    int64 // total only: requests that failed for good
	Cancelled int64 // total only: requests that were cancelled
	Errors    int64 // slices that the system failed
	Mismatch  int64 // slices that failed a check
	Retries   int64 // slices read again on the same or another drive
	Hedges    int64 // slices of this drive that were hedged
	Moved     int64 // total only: requests that ended in a spare slot
	Denied    int64 // hedges that the budget or the lack of a spare slot forbade
	Lost      int64 // times the drive was given up
	Buffered  int64 // bytes read through the page cache although direct was wanted

	Busy time.Duration // time with at least one slice in flight; total: sum of drives

	// Gauges: the value now, unchanged by Sub.
	InFlight      int64   // slices
	InFlightBytes int64   //
	Now           float64 // bytes per second over the last second
	Down          bool    // lost and not back; total: any drive

	Latency Histogram // of slices, from the start of the read to checked
}

// Counters is a reading of a set's counters. Elapsed is the time since the set
// was opened, or between two readings after Sub.
type Counters struct {
	Elapsed time.Duration
	Total   DriveCounters
	Drives  []DriveCounters // [drives], in the order given to Open
}

// Mean is the mean rate over elapsed in bytes per second.
func (c *DriveCounters) Mean(elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return float64(c.Read) / elapsed.Seconds()
}

// Share is the mean rate as a fraction of the ceiling, 0 without a ceiling.
func (c *DriveCounters) Share(elapsed time.Duration) float64 {
	if c.Ceiling <= 0 {
		return 0
	}
	return c.Mean(elapsed) / c.Ceiling
}

// Sub takes an earlier reading away from this one, in place.
func (c *Counters) Sub(earlier *Counters) {
	c.Elapsed -= earlier.Elapsed
	c.Total.sub(&earlier.Total)
	for i := range c.Drives {
		if i < len(earlier.Drives) {
			c.Drives[i].sub(&earlier.Drives[i])
		}
	}
}

func (c *DriveCounters) sub(e *DriveCounters) {
	c.Read -= e.Read
	c.Useful -= e.Useful
	c.Wasted -= e.Wasted
	c.Hedged -= e.Hedged
	c.Copied -= e.Copied
	c.Checked -= e.Checked
	c.Noted -= e.Noted
	c.Reads -= e.Reads
	c.Requests -= e.Requests
	c.Failed -= e.Failed
	c.Cancelled -= e.Cancelled
	c.Errors -= e.Errors
	c.Mismatch -= e.Mismatch
	c.Retries -= e.Retries
	c.Hedges -= e.Hedges
	c.Moved -= e.Moved
	c.Denied -= e.Denied
	c.Lost -= e.Lost
	c.Buffered -= e.Buffered
	c.Busy -= e.Busy
	for i := range c.Latency {
		c.Latency[i] -= e.Latency[i]
	}
}

// add sums a drive into the total.
func (c *DriveCounters) add(d *DriveCounters) {
	c.Ceiling += d.Ceiling
	c.Read += d.Read
	c.Useful += d.Useful
	c.Wasted += d.Wasted
	c.Hedged += d.Hedged
	c.Copied += d.Copied
	c.Checked += d.Checked
	c.Noted += d.Noted
	c.Reads += d.Reads
	c.Errors += d.Errors
	c.Mismatch += d.Mismatch
	c.Retries += d.Retries
	c.Hedges += d.Hedges
	c.Denied += d.Denied
	c.Lost += d.Lost
	c.Buffered += d.Buffered
	c.Busy += d.Busy
	c.InFlight += d.InFlight
	c.InFlightBytes += d.InFlightBytes
	c.Now += d.Now
	c.Down = c.Down || d.Down
	for i := range c.Latency {
		c.Latency[i] += d.Latency[i]
	}
}

// driveCount is what a drive's workers write and anyone reads. It is written
// once per slice, so sharing cache lines within it costs nothing.
type driveCount struct {
	read, useful, wasted, hedged, copied, checked, noted   atomic.Int64
	reads, errors, mismatch, retries, hedges, denied, lost atomic.Int64
	buffered, busy, inFlight, inFlightBytes                atomic.Int64
	down                                                   atomic.Bool
	latency                                                liveHistogram
	recent                                                 meter
}

// setCount is what concerns no single drive.
type setCount struct {
	requests, failed, cancelled, moved, copied atomic.Int64
}

func (c *driveCount) snapshot(into *DriveCounters, now time.Duration) {
	into.Read = c.read.Load()
	into.Useful = c.useful.Load()
	into.Wasted = c.wasted.Load()
	into.Hedged = c.hedged.Load()
	into.Copied = c.copied.Load()
	into.Checked = c.checked.Load()
	into.Noted = c.noted.Load()
	into.Reads = c.reads.Load()
	into.Errors = c.errors.Load()
	into.Mismatch = c.mismatch.Load()
	into.Retries = c.retries.Load()
	into.Hedges = c.hedges.Load()
	into.Denied = c.denied.Load()
	into.Lost = c.lost.Load()
	into.Buffered = c.buffered.Load()
	into.Busy = time.Duration(c.busy.Load())
	into.InFlight = c.inFlight.Load()
	into.InFlightBytes = c.inFlightBytes.Load()
	into.Now = c.recent.rate(now)
	into.Down = c.down.Load()
	c.latency.read(&into.Latency)
}

// Counters reads all counters into c. It takes no lock, and allocates nothing
// once c.Drives has room for all drives. Counters of one reading may be a slice
// apart from each other.
func (s *Set) Counters(c *Counters) {
	now := s.since()
	if cap(c.Drives) < len(s.drives) {
		c.Drives = make([]DriveCounters, len(s.drives))
	}
	c.Drives = c.Drives[:len(s.drives)]
	c.Elapsed = now
	c.Total = DriveCounters{Name: "total"}
	for i, d := range s.drives {
		into := &c.Drives[i]
		*into = DriveCounters{Name: d.Name, Emulated: d.Emulated}
		if d.Profile != nil {
			into.Ceiling = d.Profile.Best.Rate
		}
		d.count.snapshot(into, now)
		c.Total.add(into)
	}
	c.Total.Requests = s.count.requests.Load()
	c.Total.Failed = s.count.failed.Load()
	c.Total.Cancelled = s.count.cancelled.Load()
	c.Total.Moved = s.count.moved.Load()
	c.Total.Copied += s.count.copied.Load()
}
