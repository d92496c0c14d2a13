package main

import (
	"fmt"
	"slices"
	"time"

	"deltafin/ssdio"
	"deltafin/tui/pane"
)

// A driveWatch notices what a person should know of one drive while the work goes on:
// that it is lost, that reads of it had to be mended, that it is slower than it was.
type driveWatch struct {
	since  time.Time   // it is lost since then; zero if it is not
	base   int64       // bad reads that belong to a loss
	bad    int64       // bad reads that were mended
	told   int64       // bad when the card was worded
	badAt  time.Time   // when bad grew
	open   driveWindow // being filled
	last   driveWindow // filled last
	best   driveWindow // the fastest
	strike int         // windows in a row that were slow
	slow   time.Time   // since then; zero if it is not
	was    float64     // bytes a second before
	is     float64     // and when it was found slow
}

// A driveWindow is how a drive was while it had something to do.
type driveWindow struct {
	at      time.Time // of its beginning
	from    ssdio.DriveCounters
	rate    float64       // bytes per second of work
	latency time.Duration // of half of the reads
	ceiling float64       // bytes a second, 0 if not known
}

func (w *driveWindow) share() float64 {
	if w.ceiling <= 0 {
		return 0
	}
	return w.rate / w.ceiling
}

const (
	// slowWindow is how much work of a drive is judged at a time, in time that it is
	// busy: long enough to even out what experts it happens to hold.
	slowWindow = 5 * time.Second
	// slowStrikes is how many windows in a row must be slow.
	slowStrikes = 2
	// mendedFor is how long a mended read is told of.
	mendedFor = 10 * time.Minute
)

// look takes the counters of a drive. It returns a line when it has come back.
func (w *driveWatch) look(d *ssdio.DriveCounters, ceiling float64, peers []driveWatch, least time.Duration, now time.Time) (said string) {
	bad := d.Errors + d.Mismatch
	switch {
	case d.Down:
		if w.since.IsZero() {
			w.since = now
		}
		w.base = bad - w.bad // what a lost drive fails is told by its loss
		w.open, w.slow, w.strike = driveWindow{}, time.Time{}, 0
		return ""
	case !w.since.IsZero():
		said = fmt.Sprintf("Drive %s answers again after %s and is used again.", d.Name, pane.Span(now.Sub(w.since)))
		w.since, w.base = time.Time{}, bad-w.bad
	}
	if n := bad - w.base; n > w.bad {
		w.bad, w.badAt = n, now
		if w.told == 0 || n >= 10*w.told {
			w.told = n
		}
	}
	w.pace(d, ceiling, peers, least, now)
	return said
}

// pace judges the speed whenever a window is full.
func (w *driveWatch) pace(d *ssdio.DriveCounters, ceiling float64, peers []driveWatch, least time.Duration, now time.Time) {
	if w.open.at.IsZero() {
		w.open = driveWindow{at: now, from: *d}
		return
	}
	busy := d.Busy - w.open.from.Busy
	if busy < least {
		return
	}
	idle := 2*busy < now.Sub(w.open.at) // it waits for work, not the work for it
	got := w.open
	w.open = driveWindow{at: now, from: *d}
	if idle {
		return
	}
	got.rate, got.ceiling = float64(d.Read-got.from.Read)/busy.Seconds(), ceiling
	half := d.Latency
	for i := range half {
		half[i] -= got.from.Latency[i]
	}
	got.latency = half.Quantile(0.5)
	w.last = got
	switch usual, slow := w.judge(&got, peers); {
	case slow:
		if w.strike++; w.strike >= slowStrikes && w.slow.IsZero() {
			w.slow, w.was, w.is = got.at, usual, got.rate
		}
	default:
		w.strike, w.slow = 0, time.Time{}
		if got.rate > w.best.rate {
			w.best = got
		}
	}
}

// judge compares a window with the best of the drive, and with how far the other
// drives get of their ceilings. Fewer reads at a time make a drive slower and each
// read faster; half the speed at a longer latency is no lack of work.
func (w *driveWatch) judge(got *driveWindow, peers []driveWatch) (usual float64, slow bool) {
	if w.best.rate > 0 && got.rate < w.best.rate/2 && got.latency > w.best.latency {
		return w.best.rate, true
	}
	var shares []float64
	for i := range peers {
		if p := &peers[i]; p != w && p.last.share() > 0 {
			shares = append(shares, p.last.share())
		}
	}
	if len(shares) == 0 || got.ceiling <= 0 {
		return 0, false
	}
	slices.Sort(shares)
	median := shares[len(shares)/2]
	return median * got.ceiling, got.share() < 0.5 && got.share() < median/2
}

// tell adds what is to be known of a drive to marks, and returns the card, nil for
// nothing.
func (w *driveWatch) tell(name string, now time.Time) (mark pane.Mark, c *pane.Card) {
	u := pane.UnitFor(w.was)
	switch {
	case !w.since.IsZero():
		return pane.Mark{Text: "LOST " + name, Bad: true}, pane.NewCard("Drive "+name+" is lost", fmt.Sprintf("Drive %s stopped answering at %s.", name, w.since.Format("15:04:05")),
			"The other drives take over its reads; the text stays the same.", "Plug it in again: it is used again by itself.")
	case !w.slow.IsZero():
		return pane.Mark{Text: "SLOW " + name}, pane.NewCard("Drive "+name+" is slow", fmt.Sprintf("Drive %s gives %s %s/s since %s; usual are %s.", name, u.Of(w.is), u.Name, w.slow.Format("15:04"), u.Of(w.was)),
			"Nothing is lost, but answers take longer.", "If it is hot, cooling or a pause helps; deltafin bench drives measures it.")
	case w.bad > 0 && now.Sub(w.badAt) < mendedFor:
		reads := "1 read of drive " + name + " failed or did not match its checksum."
		if w.told > 1 {
			reads = fmt.Sprintf("%s reads of drive %s failed or did not match their checksums.", pane.Count(w.told), name)
		}
		return pane.Mark{Text: "MENDED " + pane.Count(w.bad)}, pane.NewCard("Reads were mended", reads, "They were read again and checked; the text is right.", "If it goes on, run deltafin verify: the drive may be failing.")
	}
	return pane.Mark{}, nil
}
