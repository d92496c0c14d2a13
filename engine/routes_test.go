package engine

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"deltafin/engine/expert"
)

// TestRecordedRoutesReplay: a recording of a run, replayed through a cache of the
// same size, hits as often as the run did; and it has every choice.
func TestRecordedRoutesReplay(t *testing.T) {
	for _, name := range []string{"tiny-a", "synth"} {
		d := newDisks(t, name)
		for _, slots := range []int{d.topK + 3, d.topK + 12, 2000} {
			var buf bytes.Buffer
			e := open(t, Options{
				Model: d.dir, ExpertCache: int64(slots+2) * d.slot, NoLookahead: true, PrefillRows: 5,
				Routes: expert.NewRecorder(&buf, name),
			})
			const tokens = 30
			if _, err := e.Generate(t.Context(), e.NewSequence(), Request{Tokens: d.ids, MaxTokens: tokens + 1, Stop: []int{}}, Listener{}); err != nil {
				t.Fatal(err)
			}
			var st Streaming
			e.Streaming(&st)
			trace, err := expert.ReadTrace(&buf)
			if err != nil {
				t.Fatal(err)
			}
			if want := (len(d.ids) + tokens) * d.topK * d.cat.MoELayers(); trace.Choices != want || trace.Steps != len(d.ids)+tokens {
				t.Errorf("%s: %d choices of %d tokens recorded, want %d of %d", name, trace.Choices, trace.Steps, want, len(d.ids)+tokens)
			}
			h := expert.Replay(trace, st.Experts.Limit, 0)
			got := st.Experts.Total
			// A prompt that was read in passes is one pass in the trace.
			if diff := int64(h.Policy) - got.Hit; slots == 2000 && int64(h.Uses-h.Policy) != got.Missed || diff < -got.Uses()/20 || diff > got.Uses()/20 {
				t.Errorf("%s, %d slots: replayed %d hits of %d uses, the run had %d of %d", name, slots, h.Policy, h.Uses, got.Hit, got.Uses())
			}
		}
	}
}

type fullDisk struct{ room int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// TestRecordingEndsWithItsDisk: a recording that cannot be written ends, says so, and
// costs nothing else.
func TestRecordingEndsWithItsDisk(t *testing.T) {
	rec := expert.NewRecorder(&fullDisk{4000}, "small disk")
	e := open(t, Options{Routes: rec})
	res, err := e.Generate(t.Context(), e.NewSequence(), Request{Tokens: []int{1, 2, 3}, MaxTokens: 20, Stop: []int{}}, Listener{})
	if err != nil || len(res.Tokens) != 20 {
		t.Fatalf("%d tokens, %v", len(res.Tokens), err)
	}
	if err := rec.Err(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the recording ended with %v", err)
	}
}
