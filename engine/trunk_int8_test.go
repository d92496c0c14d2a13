package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deltafin/engine/memory"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
)

// convertTrunk converts a model's trunk; to is the folder, "" for the model's own.
func convertTrunk(t testing.TB, model, to, state string) *trunk.Int8 {
	t.Helper()
	f, wrote, err := ConvertTrunk(t.Context(), ConvertOptions{Model: model, To: to, State: state, Again: true, Threads: 2})
	if err != nil || !wrote {
		t.Fatal(wrote, err)
	}
	return f
}

// logitsOf runs ids through an engine.
func logitsOf(t testing.TB, e *Engine, ids []int, rows int) (all []float32) {
	t.Helper()
	if err := e.Logits(t.Context(), ids, rows, func(l []float32) error {
		all = append(all, l...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// The bounds on what an int8 trunk changes in the demonstration model, whose logits
// spread by 2.4 (standard deviation): over the first 64 tokens of all golden prompts
// the largest difference of a logit, where a router that stood between two experts
// took the other one; the largest at the median position; the root of the mean square
// of all; and the share of positions with another likeliest token.
const (
	int8MostLogit   = 3.5
	int8MedianLogit = 0.25
	int8RMSLogit    = 0.15
	int8Other       = 0.03
)

// TestInt8LogitsAreClose: over the golden prompts the logits with an int8 trunk stay
// within the bounds, and everything says that they are not exact.
func TestInt8LogitsAreClose(t *testing.T) {
	state := t.TempDir()
	convertTrunk(t, "", t.TempDir(), state)
	exact, rounded := open(t, Options{Threads: 2}), open(t, Options{Threads: 2, Trunk: TrunkInt8, DriveState: state})
	if i := rounded.Info(); i.Trunk != Int8Label || !strings.Contains(i.Name, Int8Label) || !strings.Contains(i.Notice, Int8Label) || TrunkOf(i.Arithmetic) != TrunkInt8 {
		t.Errorf("not labelled: %q, %q, %q, %q", i.Name, i.Trunk, i.Notice, i.Arithmetic)
	}
	if i := exact.Info(); i.Trunk != "" || strings.Contains(i.Name+i.Notice, "int8") || TrunkOf(i.Arithmetic) != TrunkExact {
		t.Errorf("labelled: %q, %q, %q, %q", i.Name, i.Trunk, i.Notice, i.Arithmetic)
	}
	vocab := exact.Info().Config.Vocab
	var most []float64 // [positions]
	sum, n, other := 0.0, 0, 0
	for _, c := range conversations(t) {
		ids := c.IDs[:min(len(c.IDs), 64)]
		a, b := logitsOf(t, exact, ids, 64), logitsOf(t, rounded, ids, 64)
		for at := 0; at < len(a); at += vocab {
			if best(a[at:at+vocab]) != best(b[at:at+vocab]) {
				other++
			}
			worst := 0.0
			for i := at; i < at+vocab; i++ {
				d := math.Abs(float64(a[i]) - float64(b[i]))
				worst, sum, n = max(worst, d), sum+d*d, n+1
			}
			most = append(most, worst)
		}
	}
	slices.Sort(most)
	worst, median, rms := most[len(most)-1], most[len(most)/2], math.Sqrt(sum/float64(n))
	t.Logf("largest difference of a logit %.3f, median of positions %.3f, rms %.4f; another likeliest token at %d of %d", worst, median, rms, other, len(most))
	if worst > int8MostLogit || median > int8MedianLogit || rms > int8RMSLogit || float64(other) > int8Other*float64(len(most)) || worst == 0 {
		t.Error("outside the bounds")
	}
}

func best(l []float32) int {
	at := 0
	for i, v := range l {
		if v > l[at] {
			at = i
		}
	}
	return at
}

// TestInt8IsTheSameStreamed: with experts mapped or streamed, with the trunk beside the
// model or on another disk, in memory or read for every pass, on every kernel and in
// passes of any size, an int8 trunk gives the same logits bit for bit.
func TestInt8IsTheSameStreamed(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		d := newDisks(t, name)
		state, to := t.TempDir(), ""
		if name == "tiny-b" {
			to = filepath.Join(t.TempDir(), "other")
		}
		cat := convertTrunk(t, d.dir, to, state).Catalog()
		exact, _, err := d.logits(t, Options{Threads: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Threads: 1, Trunk: TrunkInt8, DriveState: state, Kernel: "generic"}
		want, _, err := d.logits(t, o, 1)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(fmt.Append(nil, want), fmt.Append(nil, exact)) {
			t.Errorf("%s: nothing was rounded", name)
		}
		o.Kernel = ""
		mapped, _, err := d.logits(t, o, 5)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, name+", mapped experts", mapped, want)
		homes := [][]string{nil, with([]string{d.dir}, ",latency=100us,jitter=300us"), d.place(t, 2, 0)}
		for i, memory := range append(everyPlan(cat), 0) {
			o.ExpertCache, o.TrunkMemory, o.Threads, o.Drives = 1<<30, memory, 1+i%2, homes[i%len(homes)]
			for _, rows := range []int{1, 5} {
				what := fmt.Sprintf("%s/%d bytes of trunk/rows of %d/%v", name, memory, rows, o.Drives)
				got, st, err := d.logits(t, o, rows)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				sameLogits(t, what, got, want)
				plan := cat.Plan(memory)
				if memory == 0 {
					plan = cat.Plan(1 << 40)
				}
				if st.Trunk.Memory != plan.Memory || st.Trunk.PerPass != plan.PerToken || st.Trunk.Wasted != 0 {
					t.Errorf("%s: %+v, planned %+v", what, st.Trunk, plan)
				}
			}
		}
	}
}

// TestInt8OfTheDemonstration: the demonstration model says the same with its int8 trunk
// in memory and from emulated drives, and half as much is read.
func TestInt8OfTheDemonstration(t *testing.T) {
	state := t.TempDir()
	cat := convertTrunk(t, "", t.TempDir(), state).Catalog()
	ids := conversations(t)[0].IDs
	want := logitsOf(t, open(t, Options{Trunk: TrunkInt8, DriveState: state}), ids, 7)
	dir := t.TempDir()
	o := Options{
		Trunk: TrunkInt8, DriveState: state, ExpertCache: 5 << 20, TrunkMemory: cat.Least(),
		Drives: []string{dir + ",name=d0,limit=400MB/s", dir + ",name=d1,limit=300MB/s"},
	}
	sameLogits(t, "streamed", logitsOf(t, open(t, o), ids, 7), want)
	if exact := trunkOf(t, ""); cat.Least() > exact.Least()*6/10 || cat.Total() > exact.Total()*6/10 {
		t.Errorf("%d bytes of %d, least %d of %d", cat.Total(), exact.Total(), cat.Least(), exact.Least())
	}
}

// TestInt8IsMissing: without the file the error names what was looked for and the
// command, and nothing exact is used instead.
func TestInt8IsMissing(t *testing.T) {
	d := newDisks(t, "tiny-c")
	state, to := t.TempDir(), t.TempDir()
	check := func(o Options, words ...string) {
		t.Helper()
		o.Trunk = TrunkInt8
		e, err := Open(t.Context(), o)
		if err == nil {
			e.Close()
		}
		var missing *NoInt8Error
		if !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%v, want a NoInt8Error", err)
		}
		for _, w := range append(words, "deltafin trunk convert") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not name %q", err, w)
			}
		}
	}
	check(Options{Model: d.dir}, d.dir)
	check(Options{}, "--to DIR")
	check(Options{DriveState: state}, "--to DIR", state)
	f := convertTrunk(t, d.dir, to, state)
	open(t, Options{Model: d.dir, Trunk: TrunkInt8, DriveState: state})
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	check(Options{Model: d.dir, DriveState: state}, f.Path())
	var use *UsageError
	if _, err := Open(t.Context(), Options{Trunk: "int4"}); !errors.As(err, &use) || use.Field != "trunk" {
		t.Errorf("a form that is none: %v", err)
	}
	if _, _, err := ConvertTrunk(t.Context(), ConvertOptions{}); !errors.As(err, &use) || use.Field != "to" {
		t.Errorf("converted to nowhere: %v", err)
	}
}

// TestInt8IsRefused: the trunk of another model, one that was cut off and one with a
// wrong bit are refused and never computed with.
func TestInt8IsRefused(t *testing.T) {
	d, other := newDisks(t, "tiny-b"), newDisks(t, "tiny-c")
	f := convertTrunk(t, d.dir, "", "")
	at := f.Units[0].Offset + f.Units[0].Length/2
	flip := func() { d.flip(t, trunk.Int8Name, at) }
	flip()
	bad := func(o Options, want error) {
		t.Helper()
		o.Model, o.Trunk, o.NoLookahead = d.dir, TrunkInt8, true
		e, err := Open(t.Context(), o)
		if err == nil {
			err = e.Logits(t.Context(), d.ids, 4, func([]float32) error { return nil })
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		if !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", o, err, want)
		}
		var lost *trunk.Error
		if want == ssdio.ErrChecksum && (!errors.As(err, &lost) || lost.Layer != 0) {
			t.Errorf("%v does not name layer 0", err)
		}
	}
	for _, o := range []Options{{}, {ExpertCache: 1 << 30}, {ExpertCache: 1 << 30, TrunkMemory: f.Catalog().Least()}} {
		bad(o, ssdio.ErrChecksum)
	}
	if _, wrong, err := VerifyTrunk(t.Context(), d.dir, "", nil); err != nil || len(wrong) != 1 {
		t.Errorf("verify found %v, %v", wrong, err)
	}
	flip()
	if _, wrong, err := VerifyTrunk(t.Context(), d.dir, "", nil); err != nil || len(wrong) != 0 {
		t.Errorf("verify found %v, %v", wrong, err)
	}
	path := f.Path()
	if err := os.Truncate(path, at); err != nil {
		t.Fatal(err)
	}
	bad(Options{}, trunk.ErrInt8Damaged)
	convertTrunk(t, other.dir, "", "")
	if err := os.Rename(filepath.Join(other.dir, trunk.Int8Name), path); err != nil {
		t.Fatal(err)
	}
	bad(Options{}, trunk.ErrInt8Foreign)
	bad(Options{ExpertCache: 1 << 30}, trunk.ErrInt8Foreign)
}

// TestConversionIsAtomic: a conversion that is cancelled leaves the folder as it was,
// and a second one replaces the first.
func TestConversionIsAtomic(t *testing.T) {
	d := newDisks(t, "tiny-b")
	to := t.TempDir()
	stop := errors.New("stop here")
	names := func() (out []string) {
		entries, err := os.ReadDir(to)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	cancelled := func() {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		o := ConvertOptions{Model: d.dir, To: to, Again: true, Progress: func(trunk.Progress) {
			if n++; n == 7 {
				cancel(stop)
			}
		}}
		if _, _, err := ConvertTrunk(ctx, o); !errors.Is(err, stop) {
			t.Fatalf("%v, want the cause", err)
		}
	}
	cancelled()
	if got := names(); len(got) != 0 {
		t.Errorf("a cancelled conversion left %v", got)
	}
	first, err := os.ReadFile(convertTrunk(t, d.dir, to, "").Path())
	if err != nil {
		t.Fatal(err)
	}
	cancelled()
	again, err := os.ReadFile(filepath.Join(to, trunk.Int8Name))
	if err != nil || !bytes.Equal(again, first) || len(names()) != 1 {
		t.Errorf("a cancelled conversion changed the file or left %v: %v", names(), err)
	}
	convertTrunk(t, d.dir, to, "")
	if got := names(); len(got) != 1 {
		t.Errorf("after the second conversion there are %v", got)
	}
}

// TestConversionOnce: a whole file is not written again, and is found from then on; a
// damaged one is, and what a killed run left goes.
func TestConversionOnce(t *testing.T) {
	d := newDisks(t, "tiny-c")
	state, to := t.TempDir(), t.TempDir()
	o := ConvertOptions{Model: d.dir, To: to, Threads: 1}
	left, young := filepath.Join(to, "."+trunk.Int8Name+".17"), filepath.Join(to, "."+trunk.Int8Name+".18")
	for _, name := range []string{left, young} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if then := time.Now().Add(-2 * staleAside); os.Chtimes(left, then, then) != nil {
		t.Skip("this file system keeps no times")
	}
	f, wrote, err := ConvertTrunk(t.Context(), o)
	if err != nil || !wrote {
		t.Fatal(wrote, err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a file that may be being written: %v", err)
	}
	o.State = state
	o.Progress = func(trunk.Progress) { t.Error("converted again") }
	if _, wrote, err = ConvertTrunk(t.Context(), o); err != nil || wrote {
		t.Fatal(wrote, err)
	}
	open(t, Options{Model: d.dir, Trunk: TrunkInt8, DriveState: state})
	o.Progress = nil
	if err := os.Truncate(f.Path(), f.Bytes()-1); err != nil {
		t.Fatal(err)
	}
	if _, wrote, err = ConvertTrunk(t.Context(), o); err != nil || !wrote {
		t.Fatal(wrote, err)
	}
}

// TestInt8SnapshotsAreApart: a sequence of one form does not go on in the other.
func TestInt8SnapshotsAreApart(t *testing.T) {
	d := newDisks(t, "tiny-c")
	convertTrunk(t, d.dir, "", "")
	exact, rounded := open(t, Options{Model: d.dir, Threads: 1}), open(t, Options{Model: d.dir, Threads: 1, Trunk: TrunkInt8})
	for _, way := range [][2]*Engine{{exact, rounded}, {rounded, exact}} {
		seq := way[0].NewSequence()
		if _, err := way[0].Generate(t.Context(), seq, Request{Tokens: d.ids}, Listener{}); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := way[0].WriteSnapshot(&file, seq); err != nil {
			t.Fatal(err)
		}
		var foreign *SnapshotForeignError
		if _, err := way[1].ReadSnapshot(bytes.NewReader(file.Bytes())); !errors.As(err, &foreign) || foreign.What != "arithmetic" {
			t.Errorf("%v, want a snapshot of another arithmetic", err)
		}
		if _, err := way[0].ReadSnapshot(&file); err != nil {
			t.Error(err)
		}
	}
}

// TestInt8IsPlanned: the plan counts the int8 sizes, the same before there is a file
// and after, for a model on drives, one that is mapped and the demonstration model.
func TestInt8IsPlanned(t *testing.T) {
	d := newDisks(t, "synth")
	rich := machine{read: func() (memory.Reading, error) {
		return memory.Reading{Total: 64 << 30, Available: 60 << 30, Own: 20 << 20, Resident: 30 << 20}, nil
	}}
	state := t.TempDir()
	plan := func(o Options) *memory.Plan {
		t.Helper()
		o.machine, o.DriveState, o.Context, o.PrefillRows = rich, state, 512, 16
		p, err := PlanMemory(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, model := range []string{d.dir, ""} {
		cat := trunkOf(t, model)
		before := [3]*memory.Plan{}
		for try := range 2 {
			if try == 1 {
				convertTrunk(t, model, filepath.Join(state, "files"), state)
			}
			for i, o := range []Options{{}, {ExpertCache: 64 << 20}, {Memory: 1 << 30}} {
				o.Model, o.Trunk = model, TrunkInt8
				p := plan(o)
				if !strings.Contains(p.TrunkHow, Int8Label) || p.Trunk > cat.Total()*3/4 || p.Trunk < cat.Total()/2 {
					t.Errorf("%q, %d: %d bytes of trunk, exact %d, %s", model, i, p.Trunk, cat.Total(), p.TrunkHow)
				}
				if missing := strings.Contains(p.TrunkHow, "not converted yet, run deltafin trunk convert"); missing != (try == 0) {
					t.Errorf("%q, %d, %d: %s", model, try, i, p.TrunkHow)
				}
				if try == 0 {
					before[i] = p
					continue
				}
				if p.Trunk != before[i].Trunk || p.Total() != before[i].Total() {
					t.Errorf("planned %d of trunk, %d in all; with the file %d and %d", before[i].Trunk, before[i].Total(), p.Trunk, p.Total())
				}
				e := open(t, Options{Model: model, Trunk: TrunkInt8, DriveState: state, ExpertCache: o.ExpertCache, Memory: max(o.Memory, 1<<30), machine: rich, Context: 512, PrefillRows: 16})
				var st Streaming
				if e.Streaming(&st) && st.Trunk.Memory > e.Info().Memory.Trunk {
					t.Errorf("%d bytes of trunk, planned %d", st.Trunk.Memory, e.Info().Memory.Trunk)
				}
			}
		}
	}
}
