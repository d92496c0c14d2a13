package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deltafin/engine/trunk"
	"deltafin/ssdio"
)

// trunkOf is the catalog of a model's trunk.
func trunkOf(t testing.TB, dir string) *trunk.Catalog {
	t.Helper()
	ck, err := openCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	cat, err := trunk.NewCatalog(ck)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// everyPlan lists a memory for each number of resident layers that there is a plan of.
func everyPlan(cat *trunk.Catalog) []int64 {
	var all []int64
	last := -1
	for at := cat.Least(); ; at += 256 {
		p := cat.Plan(at)
		if p.Resident != last {
			all, last = append(all, at), p.Resident
		}
		if p.Buffers == 0 {
			return all
		}
	}
}

// TestSameLogitsWithStreamedTrunk is invariant 1 of the architecture for the trunk:
// from no resident layer to all of them, with delays, one and two workers, steps and
// passes, in place and with experts on other drives, the logits are those of the
// mapped model bit for bit, and each layer is read once for a pass.
func TestSameLogitsWithStreamedTrunk(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		d := newDisks(t, name)
		cat := trunkOf(t, d.dir)
		want, _, err := d.logits(t, Options{Threads: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		homes := [][]string{nil, with([]string{d.dir}, ",latency=100us,jitter=300us"), d.place(t, 2, 0)}
		for i, memory := range everyPlan(cat) {
			plan := cat.Plan(memory)
			for _, rows := range []int{1, 5} {
				o := Options{Threads: 1 + i%2, ExpertCache: 1 << 30, TrunkMemory: memory, Drives: homes[i%len(homes)], NoLookahead: i%4 == 0}
				what := fmt.Sprintf("%s/%d layers stay/rows of %d/%v", name, plan.Resident, rows, o.Drives)
				got, st, err := d.logits(t, o, rows)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				sameLogits(t, what, got, want)
				passes := int64((len(d.ids) + rows - 1) / rows)
				streamed := int64(cat.Head() - plan.Resident)
				if st.Trunk.Layers != passes*streamed || st.Trunk.Resident != plan.Resident || st.Trunk.PerPass != plan.PerToken {
					t.Errorf("%s: %+v of %d passes, planned %+v", what, st.Trunk, passes, plan)
				}
				// Nothing is read twice for one pass, and beyond the last only what fits the buffers.
				if most := passes*plan.PerToken + int64(plan.Buffers)*plan.Buffer; st.Trunk.Read > most || st.Trunk.Wasted != 0 {
					t.Errorf("%s: %d bytes read, %d in vain, of %d passes of %d", what, st.Trunk.Read, st.Trunk.Wasted, passes, plan.PerToken)
				}
			}
		}
	}
}

// TestTrunkReadFails: a drive that is lost while a layer is read ends the pass with an
// error that names the layer; the logits before it are right.
func TestTrunkReadFails(t *testing.T) {
	d := newDisks(t, "tiny-a")
	cat := trunkOf(t, d.dir)
	want, _, err := d.logits(t, Options{Threads: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	packs := d.place(t, 1, 0)
	for _, fault := range []string{"gone/after=40/count=always", "error/after=40/count=always", "flip/after=40/count=always"} {
		o := Options{Threads: 2, ExpertCache: 1 << 30, TrunkMemory: cat.Least(), Drives: append(slices.Clone(packs), d.dir+",name=home,fault="+fault)}
		got, _, err := d.logits(t, o, 1)
		var lost *trunk.Error
		if !errors.As(err, &lost) || lost.Layer < 0 || lost.Layer >= cat.Head() {
			t.Fatalf("%s: %v, want the error of a layer", fault, err)
		}
		if !strings.Contains(err.Error(), "home") || lost.Drive != "home" || !strings.Contains(err.Error(), fmt.Sprintf("layer %d", lost.Layer)) {
			t.Errorf("%s: the message names neither layer nor drive: %v", fault, err)
		}
		if len(got) == 0 || len(got) >= len(want) {
			t.Errorf("%s: %d logits before it failed, of %d", fault, len(got), len(want))
		}
		sameLogits(t, fault+", before it failed", got, want[:len(got)])
	}
}

// TestTrunkDriveComesBack: after a read that failed the same engine goes on, from a
// state that was not touched, with the logits that it would have had.
func TestTrunkDriveComesBack(t *testing.T) {
	d := newDisks(t, "tiny-c")
	cat := trunkOf(t, d.dir)
	want, _, err := d.logits(t, Options{Threads: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	packs := d.place(t, 1, 0)
	e, err := Open(t.Context(), Options{
		Model: d.dir, Threads: 1, ExpertCache: 1 << 30, TrunkMemory: cat.Least(),
		Drives: append(packs, d.dir+",name=home,fault=error/after=30/count=7"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	failed := 0
	for try := 0; try < 200; try++ {
		var got []float32
		err := e.Logits(t.Context(), d.ids, 1, func(l []float32) error {
			got = append(got, l...)
			return nil
		})
		if err == nil {
			if failed == 0 {
				t.Fatal("nothing failed")
			}
			sameLogits(t, "after the drive came back", got, want)
			return
		}
		failed++
		var lost *trunk.Error
		if !errors.As(err, &lost) {
			t.Fatal(err)
		}
		sameLogits(t, "before it failed", got, want[:len(got)])
		waitForDrive(t, e)
	}
	t.Fatal("the drive never came back")
}

// waitForDrive reads a part of the trunk until the drives serve it again.
func waitForDrive(t *testing.T, e *Engine) {
	t.Helper()
	obj := &e.stream.trunkCat.Model().Objects[0]
	buf := make([]byte, obj.Size)
	for t.Context().Err() == nil {
		b := e.stream.set.Read(t.Context(), ssdio.Trunk, []ssdio.Request{{Key: obj.Key, Into: ssdio.Fixed(buf)}})
		if b.Err() == nil {
			return
		}
	}
}

// TestTrunkPassIsCancelled: a pass that ends in the middle leaves an engine whose
// next pass is right.
func TestTrunkPassIsCancelled(t *testing.T) {
	d := newDisks(t, "tiny-a")
	cat := trunkOf(t, d.dir)
	want, _, err := d.logits(t, Options{Threads: 1}, 4)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Options{Model: d.dir, Threads: 1, ExpertCache: 1 << 30, TrunkMemory: cat.Least()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	stop := errors.New("stop here")
	for layer := range cat.Head() {
		ctx, cancel := context.WithCancelCause(t.Context())
		l, err := e.acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		l.observe(answerPhase, func(i int) {
			if i == layer {
				cancel(stop)
			}
		})
		_, err = l.runner.Forward(ctx, e.model.NewState(), d.ids[:4], 0)
		l.unobserve()
		l.release()
		cancel(nil)
		if layer < cat.Head()-1 && !errors.Is(err, stop) {
			t.Fatalf("stopped after layer %d: %v", layer, err)
		}
		var got []float32
		if err := e.Logits(t.Context(), d.ids, 4, func(l []float32) error {
			got = append(got, l...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, fmt.Sprintf("after a pass that stopped behind layer %d", layer), got, want)
	}
}

// TestTrunkSumsOutliveTheRun: a bit of the trunk that changed after it was read once is
// found in the next run and named.
func TestTrunkSumsOutliveTheRun(t *testing.T) {
	d := newDisks(t, "tiny-b")
	cat := trunkOf(t, d.dir)
	for _, memory := range []int64{cat.Least(), 1 << 30} {
		o := Options{Threads: 1, ExpertCache: 1 << 30, TrunkMemory: memory, DriveState: t.TempDir(), NoLookahead: true}
		if _, _, err := d.logits(t, o, 4); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(o.DriveState, "trunk-*.sums"))
		if err != nil || len(names) != 1 {
			t.Fatalf("sums are in %v, %v", names, err)
		}
		if _, st, err := d.logits(t, o, 4); err != nil || st.Drives.Total.Noted != 0 {
			t.Fatalf("second run: %v, %d bytes noted", err, st.Drives.Total.Noted)
		}
		flip := func() {
			x := cat.Model().Objects[0].Extents[0]
			d.flip(t, x.File, x.Offset+x.Length/3)
		}
		flip()
		o.Model = d.dir
		e, err := Open(t.Context(), o)
		if err == nil {
			err = e.Logits(t.Context(), d.ids, 4, func([]float32) error { return nil })
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		var bad *trunk.Error
		if !errors.As(err, &bad) || bad.Layer != 0 || !errors.Is(err, ssdio.ErrChecksum) {
			t.Errorf("%d bytes of trunk: %v, want a checksum error of layer 0", memory, err)
		}
		flip()
		// A damaged record is told and made anew.
		if err := os.Truncate(names[0], 20); err != nil {
			t.Fatal(err)
		}
		var told notices
		o.Notify = told.add
		if _, _, err := d.logits(t, o, 4); err != nil {
			t.Fatal(err)
		}
		if text := told.take(); !strings.Contains(text, "recorded anew") {
			t.Errorf("told %q", text)
		}
		if sums, err := readSums(names[0], cat.Model().Fingerprint, blocksOf(cat.Model())); err != nil || sums == nil {
			t.Errorf("after that: %v", err)
		}
	}
}

// TestStreamedTrunkOfTheDemonstration: the demonstration model says the same with its
// trunk from emulated drives, and progress is told to the end.
func TestStreamedTrunkOfTheDemonstration(t *testing.T) {
	cat := trunkOf(t, "")
	run := func(o Options) ([]int, Streaming) {
		e, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		res, err := e.Generate(t.Context(), e.NewSequence(), Request{Tokens: e.Tokenizer().Encode("What is Deltafin?"), MaxTokens: 8}, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		var st Streaming
		e.Streaming(&st)
		return res.Tokens, st
	}
	want, _ := run(Options{})
	dir := t.TempDir()
	for _, memory := range []int64{cat.Least(), (cat.Least() + cat.Total()) / 2, 1 << 30} {
		var last trunk.Progress
		o := Options{
			ExpertCache: 5 << 20, TrunkMemory: memory,
			Drives:  []string{dir + ",name=d0,limit=400MB/s", dir + ",name=d1,limit=300MB/s"},
			Loading: func(p trunk.Progress) { last = p },
		}
		got, st := run(o)
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes of trunk: %v, mapped %v", memory, got, want)
		}
		if plan := cat.Plan(memory); last.Done != last.Total || last.Total != plan.Stays || st.Trunk.Memory > max(memory, cat.Least()) {
			t.Errorf("%d bytes of trunk: loaded %+v of %+v", memory, last, plan)
		}
	}
}

// TestTrunkOptionsAreChecked: what cannot be is refused before anything is read.
func TestTrunkOptionsAreChecked(t *testing.T) {
	d := newDisks(t, "tiny-b")
	for _, o := range []Options{{TrunkMemory: -1}, {TrunkMemory: 1 << 30}, {TrunkMemory: 1000, ExpertCache: 1 << 30}} {
		o.Model = d.dir
		e, err := Open(t.Context(), o)
		var use *UsageError
		if err == nil {
			e.Close()
		}
		if !errors.As(err, &use) || use.Field != "trunk memory" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
