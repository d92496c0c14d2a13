//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/session"
	"deltafin/session/control"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// slower is slow enough for several windows to meet one answer.
var slower = []string{"--cache", "2MB", "--drive", os.TempDir() + ",limit=800KB/s,name=slower"}

// swift is the same model on a drive that holds nobody up.
var swift = []string{"--cache", "2MB", "--drive", os.TempDir() + ",limit=200MB/s,name=swift"}

const story = "Tell me a story about a fox.\r"

// TestASecondWindowWatchesAndAsks: it meets the owner, shows its work, pauses it, asks
// for the engine and is refused; when the owner has ended, it gets the engine and goes
// on with the same answer to its end.
func TestASecondWindowWatchesAndAsks(t *testing.T) {
	dir := shortHome(t)
	first := openProgram(t, dir, slow...)
	first.until("IDLE", 20*time.Second)
	first.typed(story)
	first.until("THINK", 20*time.Second)
	second := openProgram(t, dir, swift...)
	second.until("This engine is in use", 20*time.Second)
	second.until("READ ONLY", 20*time.Second)
	second.typed("a")
	second.typed("\x03") // pauses the answer over there
	first.until("PAUSED", 20*time.Second)
	second.until("PAUSED", 20*time.Second)
	second.typed("\x18o")
	second.until("take the engine over?", 20*time.Second)
	second.typed("\x1b[B\r")
	first.until("Another window asks for the engine", 20*time.Second)
	first.typed("k")
	second.until("keeps the engine", 20*time.Second)
	first.typed("\x18q")
	if code := first.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	second.until("Nothing to watch any more", 20*time.Second)
	second.typed("t")
	second.untilAfter("Opening the model", "goes on; nothing is lost", 20*time.Second)
	second.typed("\r")
	second.until("DONE", 30*time.Second)
	second.typed("\x18q")
	if code := second.exit(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, second.read())
	}
	if th := threadOf(t, dir); len(th.Turns) != 2 || th.Turns[1].Status != session.Done {
		t.Errorf("%+v", th.Turns)
	}
}

// TestDetachedOwnerHandsOver: Ctrl+X d leaves the work in the process, which says so;
// a window that watches can leave it alone; one that asks for the engine gets it at
// once, with the answer paused where it was.
func TestDetachedOwnerHandsOver(t *testing.T) {
	dir := shortHome(t)
	owner := openProgram(t, dir, slower...)
	owner.until("IDLE", 20*time.Second)
	owner.typed(story)
	owner.until("THINK", 30*time.Second)
	owner.typed("\x18d")
	owner.until("goes on in this process", 20*time.Second)
	watcher := openProgram(t, dir, "attach")
	watcher.until("works here without a window", 20*time.Second)
	watcher.typed("\x18d")
	watcher.until("left; the work goes on", 20*time.Second)
	if code := watcher.exit(); code != exitDone {
		t.Errorf("exit %d of the watcher", code)
	}
	next := openProgram(t, dir, swift...)
	next.until("This engine is in use", 20*time.Second)
	next.typed("t")
	next.until("take the engine over?", 20*time.Second)
	next.typed("\x1b[B\r")
	if code := owner.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	th := threadOf(t, dir)
	if text := owner.read(); !strings.Contains(text, "deltafin resume "+th.ID.Short()) {
		t.Errorf("the way back is not told:\n%s", text)
	}
	next.until("goes on; nothing is lost", 20*time.Second)
	next.typed("\x18q")
	next.exit()
	if len(th.Turns) != 2 || th.Turns[1].Status != session.Paused || th.Turns[1].Tokens == 0 {
		t.Errorf("%+v", th.Turns)
	}
}

// TestDetachedOwnerEndsWithCtrlC: where the terminal is still there, Ctrl+C pauses,
// saves and ends what goes on behind it.
func TestDetachedOwnerEndsWithCtrlC(t *testing.T) {
	dir := shortHome(t)
	owner := openProgram(t, dir, slower...)
	owner.until("IDLE", 20*time.Second)
	owner.typed(story)
	owner.until("PREFILL", 30*time.Second)
	owner.typed("\x18d")
	owner.until("goes on in this process", 20*time.Second)
	owner.typed("\x03")
	if code := owner.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	if text := owner.read(); !strings.Contains(text, "to go on: deltafin resume") {
		t.Errorf("the way back is not told:\n%s", text)
	}
}

// TestHandingOver: somebody at the screen can keep the engine, each time anew; when
// nobody does, it is handed over.
func TestHandingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandOver(newBackend(nil))
		asked := make(chan control.Request)
		got := make(chan ending)
		go func() { got <- h.outside(t.Context(), fullSignals{asked: asked}) }()
		card := func() *pane.Card {
			synctest.Wait()
			var s tui.Sample
			h.Snapshot(&s)
			return s.Card
		}
		asked <- control.Request{Do: control.TakeOver, Text: "pid 7"}
		first := card()
		if first == nil || !strings.Contains(first.Text, "pid 7") || first.Choices[0].Do != doKeep {
			t.Fatalf("%+v", first)
		}
		if err := h.Choose(t.Context(), doKeep); err != nil || card() != nil {
			t.Fatalf("kept: %v, %+v", err, card())
		}
		<-time.After(time.Hour)
		begin := time.Now()
		asked <- control.Request{Do: control.TakeOver, Text: "pid 7"}
		if again := card(); again == nil || again.Text == first.Text {
			t.Fatalf("the second request would not be seen: %+v", again)
		}
		if why := <-got; why != handedOver || time.Since(begin) != handOverLag {
			t.Errorf("%v after %v", why, time.Since(begin))
		}
	})
}

// TestSampleTravels: what a screen shows arrives as it was, cut to what is shown;
// without it the status alone makes a screen.
func TestSampleTravels(t *testing.T) {
	now := time.Date(2026, 11, 3, 14, 0, 0, 0, time.UTC)
	s := &tui.Sample{State: pane.Decoding, Thread: 7, Turn: 9, Branch: "main", Question: "why?\x1b", Rate: 0.97, Began: now,
		Tokens: make([]session.Token, 3), Times: make([]time.Duration, 900), Layer: 3, Layers: 93,
		Marks: []pane.Mark{{Text: "LOST d3", Bad: true}}, Card: pane.NewCard("T", "A.", "B.", "C.", tryAgain),
		Drives:  []pane.Drive{{Name: "d1", Now: 6.9e9, History: append(make([]float64, 300), math.NaN(), 5.25e9)}},
		Experts: pane.Experts{Count: 4, Share: [][]float64{{0.333333, 1}}}}
	st := &control.Status{Sample: encodeSample(s)}
	got := decodeSample(st, now)
	if got.State != s.State || got.Thread != 7 || got.Turn != 9 || got.Question != s.Question || !got.Began.Equal(now) || got.Rate != 0.97 || !got.ReadOnly || got.Tokens != nil {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(got.Marks, s.Marks) || got.Card.Text != "A. B. C." || len(got.Times) != sentTimes || got.Experts.Share[0][0] != 0.33 {
		t.Errorf("%+v, %+v, %d times, %v", got.Marks, got.Card, len(got.Times), got.Experts.Share)
	}
	h := got.Drives[0].History
	if len(h) != sentHistory || !math.IsNaN(h[len(h)-2]) || h[len(h)-1] != 5.25e9 {
		t.Errorf("history %v", h)
	}
	if len(st.Sample) > 4000 {
		t.Errorf("%d bytes for one look", len(st.Sample))
	}
	if !math.IsNaN(s.Drives[0].History[300]) {
		t.Error("the sample that was sent was changed")
	}
	plain := decodeSample(&control.Status{State: "pausing", Thread: 7, Error: "a\nb", Elapsed: 2}, now)
	if plain.State != pane.Decoding || !plain.Pausing || plain.Card == nil || !plain.Began.Equal(now.Add(-2*time.Second)) {
		t.Errorf("%+v", plain)
	}
}

// TestWatchersAreToldOnce: that the engine is kept is news for who asked, and for
// nobody who comes later.
func TestWatchersAreToldOnce(t *testing.T) {
	k := &desk{}
	k.refuse(time.Now())
	if k.looks != 1 || time.Since(k.refused) >= keptShown {
		t.Errorf("%d changes, refused at %v", k.looks, k.refused)
	}
	r := newRemote(nil, session.Owner{PID: 7}, "me", func(error) {})
	r.asked.Store(true)
	r.show(t.Context(), &control.Status{Notice: keptNotice, Screen: "pts/1"})
	var s tui.Sample
	if r.Snapshot(&s); s.Notice != keptNotice || r.asked.Load() || !s.ReadOnly {
		t.Errorf("%+v, asked %v", s, r.asked.Load())
	}
	r.show(t.Context(), &control.Status{Screen: "pts/1", Thread: 7, Turn: 9, Sample: encodeSample(&tui.Sample{Thread: 7, Turn: 8})})
	if r.Snapshot(&s); !strings.Contains(s.Notice, "pid 7, pts/1") || s.Turn != 9 {
		t.Errorf("%q, turn %v", s.Notice, s.Turn)
	}
}

// TestWhoWatchesChangesNothing: what only the owner can do is refused with a reason.
func TestWhoWatchesChangesNothing(t *testing.T) {
	r := newRemote(nil, session.Owner{PID: 7}, "me", func(error) {})
	ctx := context.Background()
	_, fork := r.Fork(ctx, 1, 2)
	for what, err := range map[string]error{"open": r.Open(ctx, "x"), "move": r.Move(ctx, 1, 1), "remove": r.Remove(ctx, 1), "rename": r.Rename(ctx, 1, "x"),
		"fork": fork, "regenerate": r.Regenerate(ctx, 1, 2), "undo": r.Undo(ctx, 1, ""), "redo": r.Redo(ctx, 1, "")} {
		if !errors.Is(err, errWatching) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
