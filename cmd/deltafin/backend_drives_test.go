package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"deltafin/engine"
	"deltafin/engine/memory"
	"deltafin/ssdio"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// A drill is drives whose counters a test moves.
type drill struct {
	d   []ssdio.DriveCounters
	w   []driveWatch
	now time.Time
}

func newDrill(names ...string) *drill {
	x := &drill{w: make([]driveWatch, len(names)), now: time.Date(2026, 11, 3, 14, 0, 0, 0, time.UTC)}
	for _, n := range names {
		x.d = append(x.d, ssdio.DriveCounters{Name: n})
	}
	x.look()
	return x
}

func (x *drill) look() (said string) {
	for i := range x.d {
		said += x.w[i].look(&x.d[i], 7e9, x.w, slowWindow, x.now)
	}
	return said
}

// work lets a second pass in which drive i reads at a rate, each read with a latency
// of some bucket, busy for a share of it.
func (x *drill) work(i int, rate float64, bucket int, busy float64) {
	x.d[i].Busy += time.Duration(busy * float64(time.Second))
	x.d[i].Read += int64(rate * busy)
	x.d[i].Latency[bucket] += 100
}

func (x *drill) pass(seconds int, each func()) {
	for range seconds {
		each()
		x.now = x.now.Add(time.Second)
		x.look()
	}
}

func (x *drill) mark(i int) string {
	m, c := x.w[i].tell(x.d[i].Name, x.now)
	if (m.Text == "") != (c == nil) {
		return "a mark without a card"
	}
	return m.Text
}

// TestASlowDriveIsTold: half the speed at a longer latency, twice in a row, is slow;
// less work is not, nor is a drive that idles; when it recovers the mark goes.
func TestASlowDriveIsTold(t *testing.T) {
	x := newDrill("d1", "d2")
	both := func(rate float64, bucket int, busy float64) func() {
		return func() { x.work(0, 6.9e9, 60, 1); x.work(1, rate, bucket, busy) }
	}
	x.pass(20, both(6.7e9, 60, 1))
	for _, c := range []struct {
		what   string
		rate   float64
		bucket int
		busy   float64
		want   string
	}{
		{"at its usual speed", 6.7e9, 60, 1, ""},
		{"with less to do", 3.6e9, 40, 1, ""},
		{"mostly idle", 1e9, 60, 0.2, ""},
		{"throttled", 2.1e9, 80, 1, "SLOW d2"},
		{"itself again", 6.5e9, 60, 1, ""},
	} {
		x.pass(20, both(c.rate, c.bucket, c.busy))
		if got := x.mark(1); got != c.want || x.mark(0) != "" {
			t.Errorf("%s: %q, want %q; the other %q", c.what, got, c.want, x.mark(0))
		}
	}
	x.pass(20, both(2.1e9, 80, 1))
	_, c := x.w[1].tell("d2", x.now)
	checkCard(t, "slow", c)
	if !strings.Contains(c.Text, "2.1 GB/s since 14:02; usual are 6.7") {
		t.Error(c.Text)
	}
}

// TestADriveSlowFromTheStart is told by the others.
func TestADriveSlowFromTheStart(t *testing.T) {
	x := newDrill("d1", "d2", "d3")
	x.pass(30, func() { x.work(0, 6.9e9, 60, 1); x.work(1, 2e9, 60, 1); x.work(2, 6.5e9, 60, 1) })
	if x.mark(0) != "" || x.mark(1) != "SLOW d2" || x.mark(2) != "" {
		t.Errorf("%q %q %q", x.mark(0), x.mark(1), x.mark(2))
	}
}

// TestALostDriveIsTold: when, that the others go on, and when it is back; what it
// failed on the way is part of the loss.
func TestALostDriveIsTold(t *testing.T) {
	x := newDrill("d1", "d2")
	x.d[1].Errors, x.d[1].Down = 8, true
	x.look()
	x.now = x.now.Add(3 * time.Minute)
	x.d[1].Errors = 9
	x.look()
	m, c := x.w[1].tell("d2", x.now)
	checkCard(t, "lost", c)
	if m != (pane.Mark{Text: "LOST d2", Bad: true}) || !strings.Contains(c.Text, "at 14:00:00") {
		t.Errorf("%+v %s", m, c.Text)
	}
	x.d[1].Down = false
	if said := x.look(); said != "Drive d2 answers again after 3m00s and is used again." {
		t.Errorf("%q", said)
	}
	if got := x.mark(1); got != "" {
		t.Errorf("back, and still %q", got)
	}
}

// TestMendedReadsAreTold: the card is worded anew only when they are ten times as
// many, and goes when nothing more happens.
func TestMendedReadsAreTold(t *testing.T) {
	x := newDrill("d1")
	card := func() string {
		_, c := x.w[0].tell("d1", x.now)
		checkCard(t, "mended", c)
		return c.Text
	}
	x.d[0].Mismatch = 1
	x.look()
	first := card()
	x.d[0].Errors = 4
	x.look()
	if x.mark(0) != "MENDED 5" || card() != first || !strings.HasPrefix(first, "1 read of drive d1") {
		t.Errorf("%q %q, %q", x.mark(0), card(), first)
	}
	x.d[0].Errors = 1300
	x.look()
	if !strings.HasPrefix(card(), "1 301 reads of drive d1") {
		t.Error(card())
	}
	x.now = x.now.Add(mendedFor)
	if x.mark(0) != "" {
		t.Errorf("%q after %v", x.mark(0), mendedFor)
	}
}

// faulty is the backend of a demonstration with faults on its second drive, with a
// question asked.
func faulty(t *testing.T, faults ...string) *backend {
	t.Helper()
	b := newBackend(func(ctx context.Context, _ string) (*desk, error) {
		o := demoOptions(false, 50)
		for _, f := range faults {
			o.Drives[1] += ",fault=" + f
		}
		k := newDesk(streams{})
		return k, k.openDemo(ctx, o)
	})
	b.start(t.Context(), "")
	t.Cleanup(func() {
		if err := b.close().close(0); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, b, func(s *tui.Sample) bool { return s.State == pane.Idle })
	if err := b.Ask(t.Context(), tui.Question{Text: demoQuestion}); err != nil {
		t.Fatal(err)
	}
	return b
}

func marked(s *tui.Sample, want string) bool {
	for _, m := range s.Marks {
		if strings.HasPrefix(m.Text, want) {
			return true
		}
	}
	return false
}

// TestALostDriveOnTheScreen: a drive of the real engine goes in the middle; the header
// and a card say so, the answer comes to its end, and the drive's return is told.
func TestALostDriveOnTheScreen(t *testing.T) {
	b := faulty(t, "gone/after=20")
	s := waitFor(t, b, func(s *tui.Sample) bool { return marked(s, "LOST nvme1") })
	checkCard(t, "lost", s.Card)
	if s.Card.Title != "Drive nvme1 is lost" || !s.Drives[1].Lost {
		t.Errorf("%+v", s.Card)
	}
	s = waitFor(t, b, func(s *tui.Sample) bool { return s.Answers == 1 && !s.State.Busy() })
	if s.State != pane.Idle || !marked(&s, "LOST nvme1") {
		t.Errorf("in the end %s, %+v", s.State, s.Marks)
	}
}

// TestMendedReadsOnTheScreen: reads that fail are read again; the answer ends, the
// header counts them.
func TestMendedReadsOnTheScreen(t *testing.T) {
	b := faulty(t, "error/every=9/count=4")
	s := waitFor(t, b, func(s *tui.Sample) bool { return s.Answers == 1 && !s.State.Busy() })
	if !marked(&s, "MENDED") || s.Card == nil || s.Card.Title != "Reads were mended" || s.Drives[1].Errors == 0 || s.Drives[1].Retries+s.Drives[0].Retries+s.Drives[2].Retries+s.Drives[3].Retries == 0 {
		t.Errorf("%+v, %+v, %+v", s.Marks, s.Card, s.Drives)
	}
}

// TestLowMemoryOnTheScreen: the mark stays until the cache is whole again.
func TestLowMemoryOnTheScreen(t *testing.T) {
	b := demoBackend(t)
	b.tell(engine.Notice{Memory: &memory.Notice{From: 96e9, To: 84e9, Available: 1e9}})
	s := waitFor(t, b, func(s *tui.Sample) bool { return marked(s, "LOW MEMORY") })
	checkCard(t, "memory", s.Card)
	b.tell(engine.Notice{Text: "a line about something else"})
	waitFor(t, b, func(s *tui.Sample) bool {
		return marked(s, "LOW MEMORY") && strings.Contains(s.Notice, "something else")
	})
	b.tell(engine.Notice{Text: "20 GB RAM left. Expert cache grown.", Memory: &memory.Notice{From: 90e9, To: 96e9, Available: 20e9}})
	waitFor(t, b, func(s *tui.Sample) bool { return len(s.Marks) == 0 && strings.Contains(s.Notice, "grown") })
}

// TestASlowDriveOnTheScreen: the counters of the real engine lead to the mark.
func TestASlowDriveOnTheScreen(t *testing.T) {
	b := faulty(t)
	waitFor(t, b, func(s *tui.Sample) bool { return s.Answers == 1 && !s.State.Busy() })
	k, err := b.desk()
	if err != nil {
		t.Fatal(err)
	}
	m := newSampler(k)
	m.sample(heard{})
	if len(m.watches) != len(demoDrives) || m.watches[0].open.from.Read == 0 || m.watches[0].open.at.IsZero() {
		t.Fatalf("the counters are not watched: %+v", m.watches)
	}
	w := &m.watches[0]
	w.slow, w.is, w.was = time.Now(), 1e5, 9e5
	s := m.sample(heard{})
	if !marked(s, "SLOW nvme0") || s.Card == nil || s.Card.Title != "Drive nvme0 is slow" {
		t.Errorf("%+v %+v", s.Marks, s.Card)
	}
}
