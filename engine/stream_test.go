package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/synth"
	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// A disks is a golden model in a folder of its own, and folders with packs of it.
type disks struct {
	dir  string
	cat  *expert.Catalog
	slot int64 // bytes of one slot
	topK int
	ids  []int
}

func newDisks(t testing.TB, name string) *disks {
	t.Helper()
	d := &disks{dir: filepath.Join(t.TempDir(), name)}
	if name == "synth" {
		m, err := synth.New(synth.Options{Like: "small", Layers: 6, Experts: 40, Skew: 0.5, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(t.Context(), d.dir, nil); err != nil {
			t.Fatal(err)
		}
	} else if err := os.CopyFS(d.dir, os.DirFS(filepath.Join("testdata", "golden", name))); err != nil {
		t.Fatal(err)
	}
	ck, err := checkpoint.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	if d.cat, err = expert.NewCatalog(ck); err != nil {
		t.Fatal(err)
	}
	a, err := ssdio.NewArena(int(d.cat.Largest()), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.slot, d.topK = a.Bytes(), ck.Config().TopK
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		d.ids = append(d.ids, (i*37+11)%ck.Config().Vocab)
	}
	return d
}

// place puts the experts on n drives of unequal speed; overlap is as in
// place.PlanOptions.
func (d *disks) place(t testing.TB, n int, overlap float64) []string {
	t.Helper()
	var drives []*ssdio.Drive
	var cands []place.Candidate
	var folders []string
	for i := range n {
		dir := filepath.Join(t.TempDir(), fmt.Sprintf("d%d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		drive, err := ssdio.OpenDrive(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		folders, drives = append(folders, dir), append(drives, drive)
		cands = append(cands, place.Candidate{ID: drive.ID, Name: drive.Name, Speed: float64(3-i%3) * 1e9, Room: 1 << 40})
	}
	plan, err := place.NewPlan(d.cat.Model(), cands, place.PlanOptions{Overlap: overlap})
	if err != nil {
		t.Fatal(err)
	}
	job, err := place.Begin(d.cat.Model(), drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	if _, err := job.Run(t.Context(), plan, false); err != nil {
		t.Fatal(err)
	}
	return folders
}

// logits runs the ids in passes of rows.
func (d *disks) logits(t testing.TB, o Options, rows int) ([]float32, Streaming, error) {
	t.Helper()
	o.Model = d.dir
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []float32
	err = e.Logits(t.Context(), d.ids, rows, func(l []float32) error {
		out = append(out, l...)
		return nil
	})
	var st Streaming
	if e.Streaming(&st) != (o.ExpertCache > 0) {
		t.Error("an engine streams if and only if it has a cache")
	}
	return out, st, err
}

// flip changes a bit of a file of the model.
func (d *disks) flip(t testing.TB, file string, at int64) {
	t.Helper()
	path := filepath.Join(d.dir, filepath.FromSlash(file))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func sameLogits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: logit %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// with adds the same limits to all folders.
func with(folders []string, limits string) []string {
	var out []string
	for i, f := range folders {
		out = append(out, fmt.Sprintf("%s,name=d%d%s", f, i, limits))
	}
	return out
}

// TestSameLogitsFromDrives is invariant 1 of the architecture for experts that are
// read from drives: cache from the least to everything, in place and from packs on
// 1, 2 and 4 drives, delays, workers, prefill and steps give the logits of the
// mapped model bit for bit.
func TestSameLogitsFromDrives(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c", "synth"} {
		d := newDisks(t, name)
		want, _, err := d.logits(t, Options{Threads: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		homes := map[string][]string{
			"in place":                  nil,
			"in place, slow":            with([]string{d.dir}, ",latency=100us,jitter=300us"),
			"packs on 2":                d.place(t, 2, 0),
			"packs on 2, exact shares":  d.place(t, 2, -1),
			"packs on 4, slow":          with(d.place(t, 4, 0), ",latency=50us,jitter=200us"),
			"packs on 1 and the shards": append(d.place(t, 1, 0), filepath.Dir(d.dir)+",jitter=200us"),
		}
		if name != "tiny-a" { // other shapes of the model, not of the drives
			delete(homes, "in place, slow")
			delete(homes, "packs on 2")
			delete(homes, "packs on 1 and the shards")
		}
		for home, drives := range homes {
			least := int64(d.topK+2*max(len(drives), 1)) * d.slot
			for i, cache := range []int64{least, least + 3*d.slot, 1 << 30} {
				runs := [][2]int{{2, 1}, {1, len(d.ids)}} // workers, rows of a pass
				if i == 1 {
					runs = append(runs, [2]int{1, 1}, [2]int{2, 5}, [2]int{2, len(d.ids)})
				}
				for k, run := range runs {
					threads, rows, blind := run[0], run[1], (i+k)%2 == 0
					what := fmt.Sprintf("%s/%s/cache %d/%d threads/rows of %d/blind %v", name, home, cache, threads, rows, blind)
					got, st, err := d.logits(t, Options{Threads: threads, ExpertCache: cache, Drives: drives, NoLookahead: blind}, rows)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					sameLogits(t, what, got, want)
					d.checkCounts(t, what, &st, cache, rows, blind)
				}
			}
		}
	}
}

// checkCounts: every use is counted once; without lookahead every miss is one read
// and none is in vain; with room for all, no expert is read twice, and a single
// pass never reads one twice.
func (d *disks) checkCounts(t *testing.T, what string, st *Streaming, cache int64, rows int, blind bool) {
	t.Helper()
	c, io := &st.Experts.Total, &st.Drives.Total
	if blind && (c.Missed != io.Requests || c.Useful != io.Useful || c.Wasted != 0 || c.Unused != 0 || c.InTime+c.Late+c.Judged != 0) {
		t.Errorf("%s: %+v beside %d reads of %d bytes", what, *c, io.Requests, io.Useful)
	}
	if c.Missed+c.InTime+c.Late > io.Requests || c.Useful > io.Useful || c.Useful+c.Wasted > io.Read {
		t.Errorf("%s: %+v beside %d reads of %d bytes", what, *c, io.Requests, io.Useful)
	}
	if n := int64(d.cat.MoELayers() * len(d.ids) * d.topK); rows == 1 && c.Uses() != n {
		t.Errorf("%s: %d uses, want %d", what, c.Uses(), n)
	}
	if cache == 1<<30 && c.Missed > int64(d.cat.Experts()) {
		t.Errorf("%s: %d reads of %d experts", what, c.Missed, d.cat.Experts())
	}
	if rows == len(d.ids) && c.Hit != 0 {
		t.Errorf("%s: %d hits in a single pass", what, c.Hit)
	}
	if rows == 1 && st.Experts.Limit > 0 && c.Hit == 0 {
		t.Errorf("%s: no hit with %d cached experts", what, st.Experts.Limit)
	}
}

// TestDriveFailsInTheMiddle: with another holder the logits are the same; without
// one the error names layer, expert and drive, and nothing wrong comes out.
func TestDriveFailsInTheMiddle(t *testing.T) {
	d := newDisks(t, "tiny-a")
	want, _, err := d.logits(t, Options{Threads: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	full, shares := d.place(t, 2, 0), d.place(t, 2, -1)
	cache := int64(d.topK+4+5) * d.slot
	for _, fault := range []string{"gone/after=60/count=always", "error/after=60/count=always", "flip/after=60/count=always"} {
		for _, rows := range []int{1, len(d.ids)} {
			drives := slices.Clone(full)
			drives[0] += ",name=left,fault=" + strings.Replace(fault, "60", "5", 1)
			got, st, err := d.logits(t, Options{Threads: 2, ExpertCache: cache, Drives: drives}, rows)
			if err != nil {
				t.Fatalf("%s, another holder: %v", fault, err)
			}
			sameLogits(t, fault+", another holder", got, want)
			if st.Drives.Total.Retries == 0 {
				t.Errorf("%s: nothing failed", fault)
			}
		}
		drives := slices.Clone(shares)
		drives[0] += ",name=left,fault=" + fault
		got, _, err := d.logits(t, Options{Threads: 2, ExpertCache: cache, Drives: drives}, 1)
		var lost *expert.Error
		if !errors.As(err, &lost) || lost.Layer < 1 || lost.Expert < 0 {
			t.Fatalf("%s, no other holder: %v", fault, err)
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("layer %d expert %d", lost.Layer, lost.Expert)) || !strings.Contains(err.Error(), "left") {
			t.Errorf("%s: the message names neither expert nor drive: %v", fault, err)
		}
		if len(got) == 0 || len(got) >= len(want) {
			t.Errorf("%s: %d logits before it failed, of %d", fault, len(got), len(want))
		}
		sameLogits(t, fault+", before it failed", got, want[:len(got)])
	}
}

// TestResumesOnOtherDrives: a text that is interrupted at every tenth token, kept as
// a snapshot and gone on with over other drives, another cache and another number of
// workers is the text of the model in memory.
func TestResumesOnOtherDrives(t *testing.T) {
	for _, name := range []string{"tiny-a", "synth"} {
		d := newDisks(t, name)
		mapped := open(t, Options{Model: d.dir})
		const tokens = 40
		res, err := mapped.Generate(t.Context(), mapped.NewSequence(), Request{Tokens: d.ids, MaxTokens: tokens, Stop: []int{}}, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		want := res.Tokens
		packs := d.place(t, 2, 0)
		var kept bytes.Buffer
		ids := slices.Clone(d.ids)
		for i, o := range []Options{
			{Threads: 1, ExpertCache: int64(d.topK+2) * d.slot},
			{Threads: 2, ExpertCache: int64(d.topK+9) * d.slot, Drives: with(packs, ",jitter=200us")},
			{Threads: 2, ExpertCache: 1 << 30, NoLookahead: true, Drives: packs},
			{Threads: 2, ExpertCache: int64(d.topK+4) * d.slot, Drives: with(packs, ",latency=100us,fault=flip/every=9/count=always")},
		} {
			o.Model = d.dir
			e := open(t, o)
			seq := e.NewSequence()
			if i > 0 {
				if seq, err = e.ReadSnapshot(&kept); err != nil {
					t.Fatal(err)
				}
			}
			res, err := e.Generate(t.Context(), seq, Request{Tokens: ids, MaxTokens: tokens / 4, Stop: []int{}}, Listener{})
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && res.Prefilled > 1 {
				t.Errorf("%s, run %d: %d tokens were read again", name, i, res.Prefilled)
			}
			ids = append(ids, res.Tokens...)
			kept.Reset()
			if err := e.WriteSnapshot(&kept, seq); err != nil {
				t.Fatal(err)
			}
		}
		if got := ids[len(d.ids):]; !slices.Equal(got, want) {
			t.Errorf("%s: %v in four runs, %v in one", name, got, want)
		}
	}
}

// TestDriveLostInPrefill: the error names the drive, the passes that were read stay
// read, and when the drive is back the same call ends as if nothing had happened.
func TestDriveLostInPrefill(t *testing.T) {
	d := newDisks(t, "tiny-a")
	ids := slices.Concat(d.ids, d.ids, d.ids)
	mapped := open(t, Options{Model: d.dir})
	whole := mapped.NewSequence()
	if _, err := mapped.Generate(t.Context(), whole, Request{Tokens: ids}, Listener{}); err != nil {
		t.Fatal(err)
	}
	e := open(t, Options{
		Model: d.dir, ExpertCache: int64(d.topK+2) * d.slot, PrefillRows: 6, NoLookahead: true,
		Drives: with(d.place(t, 1, 0), ",fault=error/after=150/count=4"),
	})
	seq := e.NewSequence()
	failed := 0
	for {
		var last Progress
		res, err := e.Generate(t.Context(), seq, Request{Tokens: ids}, Listener{Prefill: func(p Progress) { last = p }})
		if err == nil {
			break
		}
		var lost *expert.Error
		if !errors.As(err, &lost) || lost.Drive != "d0" {
			t.Fatalf("with the drive gone: %v", err)
		}
		if res.Finish != Failed || last.Done == len(ids) {
			t.Errorf("failed with %+v at %+v", res, last)
		}
		if failed++; failed > 12 {
			t.Fatal("it never recovers")
		}
	}
	if failed == 0 {
		t.Fatal("nothing failed")
	}
	sameLogits(t, "after the drive came back", seq.logits, whole.logits)
}

// TestSumsOutliveTheRun: what was read once from the model's own files is checked
// in later runs, and a bit that changed since is found and named.
func TestSumsOutliveTheRun(t *testing.T) {
	d := newDisks(t, "tiny-b")
	o := Options{Threads: 1, ExpertCache: 1 << 30, DriveState: t.TempDir(), NoLookahead: true}
	want, _, err := d.logits(t, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(d.dir, "deltafin*")); len(names) > 0 {
		t.Errorf("files were written to the model's folder: %v", names)
	}
	got, st, err := d.logits(t, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	sameLogits(t, "second run", got, want)
	if st.Drives.Total.Checked != st.Drives.Total.Useful || st.Drives.Total.Noted != 0 {
		t.Errorf("second run: %d of %d bytes checked, %d noted", st.Drives.Total.Checked, st.Drives.Total.Useful, st.Drives.Total.Noted)
	}
	for _, obj := range d.cat.Model().Objects { // one byte of every expert
		x := obj.Extents[0]
		d.flip(t, x.File, x.Offset+x.Length/2)
	}
	_, _, err = d.logits(t, o, 1)
	var bad *expert.Error
	if !errors.As(err, &bad) || !errors.Is(err, ssdio.ErrChecksum) {
		t.Errorf("changed files: %v, want a checksum error of an expert", err)
	}
}

// TestStreamedDemonstration: the demonstration model from four drives, with a cache
// of a quarter, says the same as from memory.
func TestStreamedDemonstration(t *testing.T) {
	dir := t.TempDir()
	run := func(o Options) ([]int, Streaming) {
		e, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ids := e.Tokenizer().Encode("What is Deltafin?")
		res, err := e.Generate(t.Context(), e.NewSequence(), Request{Tokens: ids, MaxTokens: 12}, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		var st Streaming
		e.Streaming(&st)
		return res.Tokens, st
	}
	want, _ := run(Options{})
	var drives []string
	for i := range 4 {
		drives = append(drives, fmt.Sprintf("%s,name=d%d,limit=%dMB/s,latency=50us", dir, i, 200+100*i))
	}
	got, st := run(Options{ExpertCache: 5 << 20, Drives: drives})
	if !slices.Equal(got, want) {
		t.Errorf("streamed %v, mapped %v", got, want)
	}
	if c := &st.Experts.Total; c.Hit == 0 || c.Missed == 0 || c.Stall <= 0 || len(st.Drives.Drives) != 4 {
		t.Errorf("counts %+v from %d drives", *c, len(st.Drives.Drives))
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the drives' folder has %v, %v", names, err)
	}
}

func TestOpenRefusesWhatCannotStream(t *testing.T) {
	d := newDisks(t, "tiny-b")
	var use *UsageError
	var small *expert.BudgetError
	for _, c := range []struct {
		o    Options
		as   any
		text string
	}{
		{Options{ExpertCache: -1}, &use, "expert cache"},
		{Options{Drives: []string{d.dir}}, &use, "name a size"},
		{Options{ExpertCache: 1 << 30, Drives: []string{d.dir + ",limit=fast"}}, &use, "limit"},
		{Options{ExpertCache: 1 << 30, Drives: []string{d.dir, d.dir}}, &use, "same drive"},
		{Options{ExpertCache: 1000}, &small, "is too small"},
		{Options{ExpertCache: 1 << 30, Drives: []string{filepath.Join(d.dir, "nowhere")}}, nil, "nowhere"},
		{Options{ExpertCache: 1 << 30, Drives: []string{t.TempDir()}}, nil, "deltafin place"},
		{Options{ExpertCache: 1 << 30, Drives: d.place(t, 2, -1)[:1]}, nil, "not complete"},
	} {
		c.o.Model = d.dir
		e, err := Open(t.Context(), c.o)
		if err == nil {
			e.Close()
			t.Fatalf("%+v was opened", c.o)
		}
		if c.as != nil && !errors.As(err, c.as) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.text)
		}
	}
}
