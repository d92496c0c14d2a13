//go:build linux || darwin

package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/creack/pty"

	"deltafin/engine"
	"deltafin/session"
	answers "deltafin/session/run"
	jobs "deltafin/session/run/work"
	"deltafin/tui"
	"deltafin/tui/theme"
)

// BenchmarkScreenCost is what the screen costs the demonstration model, from memory and
// from its four drives: each operation is a pair of runs, one with the screen of 120x40
// and one without, in turns. It reports tokens a second without it, and the median of
// what the pairs lost to it, which must stay under 5 %.
//
//	go test ./cmd/deltafin -run '^$' -bench ScreenCost -benchtime 12x
func BenchmarkScreenCost(b *testing.B) {
	b.Run("memory", func(b *testing.B) { screenCost(b, engine.Options{}, 8) })
	b.Run("drives", func(b *testing.B) { screenCost(b, demoOptions(false, 1), 1) })
}

// screenCost measures pairs of runs of so many answers each.
func screenCost(b *testing.B, o engine.Options, count int) {
	k := newDesk(streams{})
	if err := k.openDemo(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := k.close(0); err != nil {
			b.Error(err)
		}
	})
	// A thread for each kind of run: the same seeds, and so the same answers, in both.
	var of [2]*jobs.State
	for i := range of {
		if _, err := k.d.Ask(b.Context(), jobs.Question{Text: demoQuestion}); err != nil {
			b.Fatal(err)
		}
		of[i] = k.ended(b, i+1)
	}
	answer := func(with int, seed uint64) []time.Duration {
		n := k.d.State().Answers + 1
		if err := k.d.Regenerate(of[with].Thread, of[with].Turn, func(h *answers.How) { h.Seed = seed }); err != nil {
			b.Fatal(err)
		}
		return k.ended(b, n).Times
	}
	var lost, without []float64
	for b.Loop() {
		var rates [2]float64 // without and with it
		for i := range rates {
			with, seed := (i+len(lost))%2, uint64(1000*(len(lost)+1))
			answer(with, seed) // the screen opens at the thread of the newest answer
			gone := func() {}
			if with == 1 {
				gone = watched(b, k)
			}
			tokens, took := 0, time.Duration(0)
			for range count {
				seed++
				for _, d := range answer(with, seed) {
					tokens, took = tokens+1, took+d
				}
			}
			gone()
			rates[with] = float64(tokens) / took.Seconds()
		}
		b.Logf("%.1f tok/s without the screen, %.1f with it", rates[0], rates[1])
		lost, without = append(lost, 100*(1-rates[1]/rates[0])), append(without, rates[0])
	}
	slices.Sort(lost)
	slices.Sort(without)
	b.ReportMetric(without[len(without)/2], "tok/s")
	b.ReportMetric((lost[len(lost)/2]+lost[(len(lost)-1)/2])/2, "%lost")
}

// ended waits for the end of the nth answer.
func (k *desk) ended(b *testing.B, n int) *jobs.State {
	b.Helper()
	late := time.After(5 * time.Minute)
	for {
		changed := k.d.Changed()
		if st := k.d.State(); st.Answers >= n {
			return st
		} else if st.Err != nil {
			b.Fatal(st.Err)
		}
		select {
		case <-changed:
		case <-late:
			b.Fatalf("answer %d does not end: %+v", n, k.d.State())
		}
	}
}

// watched shows a desk on the whole screen, on a pseudo-terminal that is read and
// thrown away, until gone is called.
func watched(b *testing.B, k *desk) (gone func()) {
	b.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		b.Skipf("no pseudo-terminal here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		b.Fatal(err)
	}
	look, err := theme.New(theme.Dark, theme.TrueColour, theme.Braille())
	if err != nil {
		b.Fatal(err)
	}
	go func() { // ends with the terminal
		buf := make([]byte, 1<<16)
		for err := error(nil); err == nil; {
			_, err = master.Read(buf)
		}
	}()
	back := newBackend(func(context.Context, string) (*desk, error) { return k, nil })
	back.start(b.Context(), "")
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() {
		done <- tui.Run(ctx, tui.Options{Backend: back, Theme: look, In: slave, Out: slave, Environ: os.Getenv})
	}()
	return func() {
		cancel()
		<-done // the error is that of cancel
		back.close()
		slave.Close()
		master.Close()
	}
}

// BenchmarkReadLong reads a thread of 200,000 tokens from the disk, all that the screen
// waits for before it can show one: tui.BenchmarkOpenLong is the rest. Together they
// must stay under 200 ms.
func BenchmarkReadLong(b *testing.B) {
	store, err := session.Open(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	const answers, each = 40, 5000
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 1, Title: "long", Branch: "main", Created: time.Now(), Updated: time.Now()}}
	add := func(role session.Role, body *session.Body) {
		n := session.ID(len(th.Turns))
		th.Turns = append(th.Turns, session.Turn{ID: 100 + n, Parent: (99 + n) * min(n, 1), Role: role, Status: session.Done, Created: time.Now(), Ended: time.Now(), Tokens: len(body.Tokens), Body: body})
	}
	for range answers {
		add(session.User, &session.Body{Text: demoQuestion})
		body := new(session.Body)
		for i := range each {
			word := [...]string{" fox", " the", " and", "ing ", ". So", "\n\n- "}[i%6]
			body.Tokens = append(body.Tokens, session.Token{ID: int32(i), Channel: session.InAnswer, Text: word})
			body.Text += word
		}
		add(session.Assistant, body)
	}
	last := th.Turns[len(th.Turns)-1].ID
	th.Branches = []session.Branch{{Name: "main", Leaf: last, Tip: last, Created: time.Now()}}
	if err := store.Import(b.Context(), th); err != nil {
		b.Fatal(err)
	}
	back := &backend{k: &desk{store: store}}
	for b.Loop() {
		if got, err := back.Thread(b.Context(), 1); err != nil || len(got.Turns) != 2*answers {
			b.Fatal(err)
		}
	}
}

// BenchmarkSample is what one look at the engine, the drives, the memory and the queue
// takes. At a token a second there are about five, of which one looks at everything.
func BenchmarkSample(b *testing.B) {
	k := newDesk(streams{})
	if err := k.openDemo(b.Context(), demoOptions(false, 50)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := k.close(0); err != nil {
			b.Error(err)
		}
	})
	if _, err := k.d.Ask(b.Context(), jobs.Question{Text: demoQuestion}); err != nil {
		b.Fatal(err)
	}
	k.ended(b, 1)
	m := newSampler(k)
	b.ReportAllocs()
	for b.Loop() {
		m.sample(heard{}) // at rest each look is at everything
	}
}
