package engine

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deltafin/engine/memory"
)

// notices collects what an Engine says.
type notices struct {
	mu  sync.Mutex // guards below
	all []string
}

func (n *notices) add(x Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x.Text)
}

func (n *notices) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := strings.Join(n.all, "\n")
	n.all = nil
	return s
}

// TestPlanIsKept: what the plan says is what the engine takes, and the logits are
// those of an engine without one.
func TestPlanIsKept(t *testing.T) {
	d := newDisks(t, "tiny-a")
	want, _, err := d.logits(t, Options{Threads: 1}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{
		{Memory: 1 << 30},
		{Memory: SpareMemory},
		{Memory: SpareMemory, ExpertCache: 40 * d.slot, Context: 100, PrefillRows: 7},
		{Memory: SpareMemory, Drives: []string{d.dir}},
	} {
		o.Model, o.Threads = d.dir, 1
		plan, err := PlanMemory(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		e := open(t, o)
		got := e.Info().Memory
		if got.Cache != plan.Cache || got.Mapped != plan.Mapped || got.Trunk != plan.Trunk || got.State != plan.State || got.Pass != plan.Pass {
			t.Errorf("planned %+v, opened with %+v", plan, got)
		}
		if got.Mapped != (o.Memory == SpareMemory && o.ExpertCache == 0 && o.Drives == nil) || got.Mapped == e.Info().Streams {
			t.Errorf("with %+v experts are mapped: %v, streamed: %v", o, got.Mapped, e.Info().Streams)
		}
		var st Streaming
		if e.Streaming(&st) && (st.Experts.Bytes > got.Cache || st.Experts.Slots != got.Slots) {
			t.Errorf("%d slots of %d bytes, planned were %d of %d", st.Experts.Slots, st.Experts.Bytes, got.Slots, got.Cache)
		}
		if o.ExpertCache > 0 && (got.Cache > o.ExpertCache || got.Rows != 7 || got.Context != 100) {
			t.Errorf("%+v does not keep to %+v", got, o)
		}
		var logits []float32
		if err := e.Logits(t.Context(), d.ids, 4, func(l []float32) error { logits = append(logits, l...); return nil }); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, "with a plan", logits, want)
	}
}

// TestTooLittleMemory: what cannot work is refused before anything is opened, with
// its numbers.
func TestTooLittleMemory(t *testing.T) {
	d := newDisks(t, "tiny-a")
	poor := machine{read: func() (memory.Reading, error) {
		return memory.Reading{Total: 1 << 30, Available: 100 << 20, Own: 10 << 20}, nil
	}}
	blind := machine{read: func() (memory.Reading, error) { return memory.Reading{}, memory.ErrUnknown }}
	var e *memory.Error
	for _, o := range []Options{
		{Memory: 1 << 20},
		{Memory: 1 << 50},
		{Memory: SpareMemory, Drives: []string{d.dir}, machine: poor},
		{Memory: SpareMemory, ExpertCache: 1 << 20, machine: poor},
	} {
		o.Model = d.dir
		if _, err := Open(t.Context(), o); !errors.As(err, &e) || e.Need <= e.Have || !strings.Contains(err.Error(), "this plan needs") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := Open(t.Context(), Options{Model: d.dir, Memory: SpareMemory, machine: blind}); !errors.Is(err, memory.ErrUnknown) {
		t.Errorf("spare memory of an unknown machine: %v", err)
	}
	open(t, Options{Model: d.dir, Memory: 1 << 30, machine: blind})
	for _, o := range []Options{{Memory: -2}, {Context: -1}} {
		var u *UsageError
		if _, err := Open(t.Context(), o); !errors.As(err, &u) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestSameLogitsWhileResized resizes the cache at random while a prompt is read, in
// passes and token by token: the logits stay the same to the bit.
func TestSameLogitsWhileResized(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		d := newDisks(t, name)
		want, _, err := d.logits(t, Options{Threads: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1, 5} {
			e := open(t, Options{Model: d.dir, Threads: 2, ExpertCache: 1 << 40, Drives: []string{d.dir + ",name=slow,latency=20us,jitter=200us"}})
			s := e.stream.store
			stop, ticks := make(chan struct{}), time.NewTicker(200*time.Microsecond)
			defer ticks.Stop()
			var resizer sync.WaitGroup
			times := 0
			resizer.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(rows), 9))
				for {
					select {
					case <-stop:
						return
					case <-ticks.C:
					}
					if err := s.Resize(s.Least() + rng.Int64N(int64(d.cat.Experts())*d.slot)); err != nil {
						t.Error(err)
						return
					}
					times++
				}
			})
			for range 3 {
				var got []float32
				if err := e.Logits(t.Context(), d.ids, rows, func(l []float32) error { got = append(got, l...); return nil }); err != nil {
					t.Fatal(err)
				}
				sameLogits(t, name+" while the cache is resized", got, want)
			}
			close(stop)
			resizer.Wait()
			var st Streaming
			e.Streaming(&st)
			if times == 0 || st.Experts.Total.Missed == 0 || st.Experts.Cached > st.Experts.Limit {
				t.Errorf("%s: resized %d times, %d missed, %d of %d cached", name, times, st.Experts.Total.Missed, st.Experts.Cached, st.Experts.Limit)
			}
		}
	}
}

// TestCacheFollowsTheMachine: when another program takes memory the cache is cut,
// within a run, and it is said; the text stays the same.
func TestCacheFollowsTheMachine(t *testing.T) {
	d := newDisks(t, "tiny-a")
	want, _, err := d.logits(t, Options{Threads: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	available := int64(8 << 30)
	told := make(chan Notice, 10)
	e := open(t, Options{
		Model: d.dir, Threads: 1, Memory: 4 << 30, Notify: func(n Notice) { told <- n },
		machine: machine{read: func() (memory.Reading, error) {
			mu.Lock()
			defer mu.Unlock()
			return memory.Reading{Total: 16 << 30, Available: available, Own: 100 << 20}, nil
		}},
	})
	run := func() {
		t.Helper()
		var got []float32
		if err := e.Logits(t.Context(), d.ids, 1, func(l []float32) error { got = append(got, l...); return nil }); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, "after the cache was cut", got, want)
	}
	run()
	var before, after Streaming
	e.Streaming(&before)
	mu.Lock()
	available = 100 << 20
	mu.Unlock()
	n := <-told // the first is of the cut: the tests of package memory know when
	e.Streaming(&after)
	if n.Memory == nil || n.Memory.To != e.stream.store.Least() || n.Memory.Others < 8<<30-200<<20 || after.Experts.Limit >= before.Experts.Limit {
		t.Errorf("%+v: the limit went from %d to %d experts", n.Memory, before.Experts.Limit, after.Experts.Limit)
	}
	if !strings.HasPrefix(n.Text, "Only 105 MB RAM left (another program took 8.5 GB). Expert cache cut from ") {
		t.Errorf("%q", n.Text)
	}
	run()
}

// TestHeatIsKept: the second run's cache prefers what the first used most.
func TestHeatIsKept(t *testing.T) {
	d := newDisks(t, "tiny-a")
	dir := filepath.Join(t.TempDir(), "state", "heat")
	var said notices
	run := func() Streaming {
		t.Helper()
		_, st, err := d.logits(t, Options{ExpertCache: int64(3*d.topK+4) * d.slot, Threads: 1, HeatDir: dir, Notify: said.add}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	run()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	path := filepath.Join(dir, files[0].Name())
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	run()
	if said := said.take(); said != "" {
		t.Errorf("nothing was wrong, but it said %q", said)
	}
	second, err := os.ReadFile(path)
	if err != nil || string(second) == string(first) {
		t.Errorf("the heat of the second run does not build on the first: %v", err)
	}
	// Damage, another model's heat, and a folder that cannot be written to.
	if err := os.WriteFile(path, second[:len(second)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	run()
	if text := said.take(); !strings.Contains(text, "damaged") || strings.Contains(text, "\n") {
		t.Errorf("after damage it said %q", text)
	}
	if got, err := os.ReadFile(path); err != nil || len(got) != len(second) {
		t.Errorf("the damaged heat was not replaced: %d bytes, %v", len(got), err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run()
	if text := said.take(); !strings.Contains(text, "could not be kept for the next run") || !strings.Contains(text, "Nothing else is lost") {
		t.Errorf("without a place for heat it said %q", text)
	}
}
