package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deltafin/engine"
	"deltafin/engine/expert"
	"deltafin/session/control"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// demoBackend is the backend of a demonstration that is idle.
func demoBackend(t *testing.T) *backend {
	t.Helper()
	b := newBackend(func(ctx context.Context, _ string) (*desk, error) {
		k := newDesk(streams{})
		return k, k.openDemo(ctx, demoOptions(false, 50))
	})
	b.start(t.Context(), "")
	t.Cleanup(func() {
		if err := b.close().close(0); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, b, func(s *tui.Sample) bool { return s.State == pane.Idle })
	return b
}

// waitFor waits for a sample, a minute at most.
func waitFor(t *testing.T, b *backend, is func(s *tui.Sample) bool) tui.Sample {
	t.Helper()
	late := time.After(time.Minute)
	for {
		changed := b.Changed()
		var s tui.Sample
		if b.Snapshot(&s); is(&s) {
			return s
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("it never came; the last sample is %+v", s)
		}
	}
}

// TestBackendAnswers: a question with a file is counted before, answered, and every
// panel has figures of the answer; the thread can be read, renamed, forked and
// exported.
func TestBackendAnswers(t *testing.T) {
	b, ctx := demoBackend(t), t.Context()
	note := filepath.Join(t.TempDir(), "note.txt")
	if err := os.WriteFile(note, []byte("one\ntwo\nthree\nfour\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	q := tui.Question{Text: "What is Deltafin?", Files: []tui.Attachment{{Path: note, From: 2, To: 3}}}
	bare, err := b.Estimate(ctx, tui.Question{Text: q.Text})
	if err != nil {
		t.Fatalf("an estimate before anything was measured: %v", err)
	}
	if cost, err := b.Estimate(ctx, q); err != nil || cost.Tokens <= bare.Tokens || cost.Time.Likely != 0 {
		t.Errorf("with a file %+v, without %+v, %v", cost, bare, err)
	}
	if err := b.Ask(ctx, q); err != nil {
		t.Fatal(err)
	}
	s := waitFor(t, b, func(s *tui.Sample) bool { return s.Answers == 1 && !s.State.Busy() })
	if len(s.Drives) != len(demoDrives) || s.Drives[0].Ceiling != float64(demoDrives[0].limit)*1e3 || s.Prefetch.Uses() == 0 ||
		s.Experts.Count == 0 || s.Experts.All != 448 || len(s.Experts.Share) != 7 || s.Token.Took == 0 || len(s.Tokens) == 0 || s.Memory.Total == 0 {
		t.Errorf("a panel has no figures: %+v", s)
	}
	var all engine.Streaming
	b.k.e.Streaming(&all)
	if uses := all.Experts.Total.Uses(); s.Prefetch.Uses() > uses || s.Prefetch.Stall > s.Token.Took*10 {
		t.Errorf("%d of all %d uses are the answer's, %v of waiting a token", s.Prefetch.Uses(), uses, s.Prefetch.Stall)
	}
	if s.Experts.Reuse <= 0 || s.Experts.Reuse > 1 {
		t.Errorf("the newest token reused %v", s.Experts.Reuse)
	}
	th, err := b.Thread(ctx, s.Thread)
	if err != nil || len(th.Turns) != 2 {
		t.Fatalf("%+v, %v", th, err)
	}
	if text := th.Turns[0].Body.Text; !strings.Contains(text, "two\nthree\n") || strings.Contains(text, "four") {
		t.Errorf("the question is %q", text)
	}
	if err := b.Rename(ctx, s.Thread, "a title"); err != nil {
		t.Error(err)
	}
	if list, err := b.Threads(ctx, "TITLE"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if name, err := b.Fork(ctx, s.Thread, th.Turns[0].ID); err != nil || name == "" {
		t.Errorf("forked to %q, %v", name, err)
	}
	for _, name := range []string{"a.md", "a.html", "a.json", "a.txt"} {
		path := filepath.Join(t.TempDir(), name)
		if err := b.Export(ctx, s.Thread, path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "Deltafin") {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	if err := b.Export(ctx, s.Thread, filepath.Join(t.TempDir(), "nowhere", "a.md")); err == nil || !strings.Contains(err.Error(), "Make the folder") {
		t.Errorf("into a folder that is not there: %v", err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	err = b.Export(ctx, s.Thread, "~/a.md")
	if _, lost := os.Stat(filepath.Join(home, "a.md")); err != nil || lost != nil {
		t.Errorf("exported to the home folder: %v, %v", err, lost)
	}
	if err := b.Export(ctx, s.Thread, filepath.Join(t.TempDir(), "a.docx")); err == nil || !strings.Contains(err.Error(), ".md") {
		t.Errorf("an unknown form: %v", err)
	}
}

// TestAttachmentsThatCannotBe: what cannot be attached is said before anything is
// asked.
func TestAttachmentsThatCannotBe(t *testing.T) {
	b, dir := demoBackend(t), t.TempDir()
	binary := filepath.Join(dir, "a.bin")
	if err := os.WriteFile(binary, []byte{0, 1, 2, 255}, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, a := range map[string]tui.Attachment{
		"there is no":          {Path: filepath.Join(dir, "nothing")},
		"is not text in UTF-8": {Path: binary},
		"has no text files":    {Path: dir},
		"asked for is 100000":  {Path: "backend_test.go", From: 100_000, To: 100_001},
	} {
		err := b.Ask(t.Context(), tui.Question{Text: "What?", Files: []tui.Attachment{a}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
}

// TestBackendWithoutAModel: everything says so, and a folder that is none is a card.
func TestBackendWithoutAModel(t *testing.T) {
	b := newBackend(func(context.Context, string) (*desk, error) { return nil, control.ErrNotRunning })
	if err := b.Ask(t.Context(), tui.Question{Text: "What?"}); err == nil || !strings.Contains(err.Error(), "no model is open") {
		t.Errorf("asked without a model: %v", err)
	}
	if err := b.Open(t.Context(), "/nothing"); err != nil {
		t.Fatal(err)
	}
	s := waitFor(t, b, func(s *tui.Sample) bool { return s.Card != nil })
	if s.State != pane.Setup || !strings.Contains(s.Card.Text, "Nothing was changed") {
		t.Errorf("%+v", s)
	}
	if k := b.close(); k != nil {
		t.Error("something was opened")
	}
}

// TestTurnover: experts that came in and are not held have gone, per second.
func TestTurnover(t *testing.T) {
	var m sampler
	x := expert.Stats{Cached: 10}
	x.Total.Missed = 12
	m.turnover(&x)
	m.judged = m.judged.Add(-2 * time.Second)
	x.Total.Missed, x.Total.Late, x.Cached = 40, 8, 16 // 36 more came, 6 more are held
	if m.turnover(&x); m.evict < 14 || m.evict > 15 {
		t.Errorf("%v went a second", m.evict)
	}
	x.Total.Missed += 100
	was := m.evict
	if m.turnover(&x); m.evict != was {
		t.Errorf("judged anew within a second: %v", m.evict)
	}
}
