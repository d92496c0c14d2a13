package check

import (
	"bytes"
	"encoding/json"
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

	"deltafin/engine"
	"deltafin/engine/expert"
	"deltafin/engine/kernel"
	"deltafin/engine/simulate"
)

// quick is a configuration of a few tokens. Its drives are as slow as those of a
// check: what is read ahead depends on how long the arithmetic takes beside a read,
// which others on the machine must not change.
func quick(c Config) Config {
	c.Prompt, c.Rows, c.Answer, c.Threads = 8, 4, 5, 1
	return c
}

func measureQuick(t *testing.T, c Config) *measured {
	t.Helper()
	b, err := newBench(Options{Scratch: t.TempDir(), Repeat: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	x, err := b.measure(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestHitsAndBytesAgree: what the engine does and what it is simulated to do are the
// same uses and bytes, exactly where nothing is read ahead, else within 2 %. A machine
// that stops for longer than a read makes the engine read ahead otherwise, or ask a
// second drive, so of a few runs one has to agree.
func TestHitsAndBytesAgree(t *testing.T) {
	four := []Drive{{Rate: 50}, {Rate: 50}, {Rate: 50}, {Rate: 50}}
	for _, c := range []Config{
		{Name: "copies", Cache: 0.1, Drives: four, NoAhead: true},
		{Name: "packs", Synth: "small", Cache: 0.3, Drives: four},
	} {
		most := 0.0
		if !c.NoAhead {
			most = 0.02
		}
		differs := ""
		for range 4 {
			x := measureQuick(t, quick(c))
			row, err := x.simulate(t.Context(), simulate.NoMistake)
			if err != nil {
				t.Fatal(err)
			}
			if row.Missed.Real == 0 || row.Hit.Real == 0 || row.Read.Real == 0 {
				t.Fatalf("%s tests nothing: %+v", c.Name, row)
			}
			differs = ""
			for i, f := range append(row.classes(), row.Read) {
				if math.Abs(f.Difference) > most {
					differs += fmt.Sprintf("; figure %d is %.0f, simulated %.0f", i, f.Real, f.Simulated)
				}
			}
			if c.NoAhead {
				mistakesTell(t, x)
			}
			if differs == "" {
				break
			}
		}
		if differs != "" {
			t.Errorf("%s%s", c.Name, differs)
		}
	}
}

// mistakesTell: a simulation of a wrong engine does not pass.
func mistakesTell(t *testing.T, x *measured) {
	t.Helper()
	for _, m := range []simulate.Mistake{simulate.Uncached, simulate.Unspread} {
		row, err := x.simulate(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if row.Agrees {
			t.Errorf("mistake %d passes: %+v", m, row)
		}
		differs := row.Prefill
		if m == simulate.Uncached {
			differs = row.Read
		}
		if math.Abs(differs.Difference) <= Tolerance {
			t.Errorf("mistake %d is not seen where it should: %+v", m, differs)
		}
	}
}

// TestRunReportsAndCleansUp: a row for each configuration, and nothing left behind.
func TestRunReportsAndCleansUp(t *testing.T) {
	scratch := t.TempDir()
	c := quick(Config{Name: "fast", Cache: 0.5, Drives: []Drive{{Rate: 5000}}})
	told := 0
	r, err := Run(t.Context(), Options{Scratch: scratch, Configs: []Config{c}, Repeat: 1, Progress: func(done, of int, what string) {
		if told++; done != 0 || of != 1 || what != "fast" {
			t.Errorf("told of %q, %d of %d", what, done, of)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if told != 1 || len(r.Rows) != 1 || r.Rows[0].Name != "fast" || r.Rows[0].Decode.Real <= 0 || r.Agrees != r.Rows[0].Agrees {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := Run(t.Context(), Options{Scratch: scratch, Model: filepath.Join(scratch, "none"), Configs: []Config{c}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a model that is not there: %v", err)
	}
}

// TestRecordingIsTheEngines: the recorder notes what the engine records of its own
// router, in the order in which it asks for it.
func TestRecordingIsTheEngines(t *testing.T) {
	c := quick(Config{})
	h, err := openHome("nano", "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	text, err := h.words(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	table, err := kernel.Select("")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := record(t.Context(), h.ck, table, 1, c.Rows, text.prompt, text.answer)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e, err := engine.Open(t.Context(), engine.Options{Threads: 1, PrefillRows: c.Rows, Routes: expert.NewRecorder(&out, "test")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := runOnce(t.Context(), e, &c, text); err != nil {
		t.Fatal(err)
	}
	trace, err := expert.ReadTrace(&out)
	if err != nil {
		t.Fatal(err)
	}
	sets := trace.Sets
	// A trace joins what of a prompt's passes stands together.
	for _, p := range slices.Concat(rec.prompt, rec.answer) {
		for layer, asked := range p.Layers {
			if asked.Want == nil {
				continue
			}
			if len(sets) == 0 || sets[0].Layer != layer {
				t.Fatalf("the trace ends, or goes on with another layer than %d", layer)
			}
			got := map[int]int{}
			for i, e := range sets[0].Experts {
				got[e] = sets[0].Rows[i]
			}
			if len(got) != len(asked.Want) {
				t.Fatalf("layer %d: %d experts, the trace has %d", layer, len(asked.Want), len(got))
			}
			for i, w := range asked.Want {
				if got[int(w.Expert)] != int(w.Rows) || p.Rows == 1 && sets[0].Experts[i] != int(w.Expert) {
					t.Fatalf("layer %d: %+v, the trace has %v", layer, asked.Want, sets[0])
				}
			}
			if len(asked.Guess) == 0 || layer == 1 && len(asked.Early) == 0 {
				t.Fatalf("layer %d: no guess was recorded", layer)
			}
			sets = sets[1:]
		}
	}
	if len(sets) != 0 {
		t.Errorf("the trace goes on for %d layers", len(sets))
	}
}

// TestWaveTimesAreTakenApart: times made of known parts give these parts.
func TestWaveTimesAreTakenApart(t *testing.T) {
	const wave, each, row = 900, 400, 70
	var p passTimes
	for i := range 20 {
		rows := 1 + i%5
		p.waves = append(p.waves, waveTime{1, rows, time.Duration(wave + each + row*rows)}, waveTime{6, 9, wave + 6*each + 9*row})
	}
	w, e, r := fitWaves([]passTimes{p})
	for _, x := range []struct{ got, want time.Duration }{{w, wave}, {e, each}, {r, row}} {
		if (x.got - x.want).Abs() > 2 {
			t.Errorf("wave, expert and row are %d, %d and %d, want %d, %d and %d", w, e, r, wave, each, row)
		}
	}
}

// TestFastestOfEveryStepCounts: with the counts of the fastest run, and of whole runs
// where steps are not independent.
func TestFastestOfEveryStepCounts(t *testing.T) {
	a := Side{Time: 30, Read: 1, Steps: []time.Duration{10, 20}}
	b := Side{Time: 25, Read: 2, Steps: []time.Duration{12, 13}}
	if got := undisturbed([]Side{a, b}); got.Time != 23 || got.Read != 2 || b.Steps[0] != 12 {
		t.Errorf("%+v of %+v and %+v", got, a, b)
	}
	a.Steps, b.Steps = nil, nil
	if got := undisturbed([]Side{a, b}); got.Time != 25 || got.Read != 2 {
		t.Errorf("%+v of whole runs", got)
	}
	x := measured{}
	for phase := range x.real {
		x.real[phase], x.fromMemory[phase] = []Side{a, b}, []Side{b, b}
	}
	if !x.disturbed() {
		t.Error("a run that betters the first by a sixth is not the last")
	}
	for phase := range x.real {
		x.real[phase] = []Side{b, a}
	}
	if x.disturbed() {
		t.Error("a run that betters nothing asks for another")
	}
}

// TestReportSaysWhatDiffers: the table and the JSON of a row that passes and one that
// does not.
func TestReportSaysWhatDiffers(t *testing.T) {
	h := &home{name: "m"}
	side := func(took time.Duration, hit, missed int64) [2]Side {
		s := Side{Time: took, Counts: expert.Counts{Hit: hit, Missed: missed}, Read: 1000 * missed}
		return [2]Side{s, s}
	}
	r := &Report{Tolerance: Tolerance}
	for _, sim := range [][2]Side{side(1050*time.Millisecond, 52, 48), side(time.Second, 80, 20), side(1200*time.Millisecond, 50, 50)} {
		r.Rows = append(r.Rows, *newRow(&Config{Name: "c", Answer: 10, Drives: []Drive{{}}}, h, side(time.Second, 50, 50), sim))
	}
	for i, want := range []bool{true, false, false} {
		if r.Rows[i].Agrees != want {
			t.Errorf("row %d: agrees %v: %+v", i, r.Rows[i].Agrees, r.Rows[i])
		}
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "differs"); n != 2 {
		t.Errorf("%d rows are marked:\n%s", n, text.String())
	}
	out, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(out), `"tokens_per_second":{"real":10,`) {
		t.Errorf("%s, %v", out, err)
	}
}
