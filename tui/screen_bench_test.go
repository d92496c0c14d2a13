package tui_test

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui"
	"deltafin/tui/tuitest"
)

// BenchmarkFrame120x40 is one frame of every panel and a text. At ten a second it
// must stay under 3 % of a core: 3 ms.
func BenchmarkFrame120x40(b *testing.B) {
	s := open(b, "decoding", 120, 40)
	b.ReportAllocs()
	for b.Loop() {
		s.f.Set(func(p *tui.Sample) { p.Layer = (p.Layer + 1) % p.Layers })
		s.send(tui.TickForTest)
		s.m.View()
	}
}

// BenchmarkToken120x40 is what a token costs: the sample, its text, the frame.
func BenchmarkToken120x40(b *testing.B) {
	s := open(b, "decoding", 120, 40)
	all := tuitest.Tokens(tuitest.Thoughts, strings.Repeat(tuitest.Answer, 20))
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = n%len(all) + 1
		s.f.Set(func(p *tui.Sample) { p.Tokens = all[:n] })
		s.send(tui.TickForTest)
		s.m.View()
	}
}

// longThread is a thread of about 200,000 tokens at four letters each.
func longThread() *session.Thread {
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x7a1d000000000001, Title: "long", Branch: "main"}}
	answer := strings.Repeat(tuitest.Answer+"\n", 40)
	parent, n := session.ID(0), 0
	for i := 1; n < 800_000; i++ {
		q, a := session.ID(1000+2*i), session.ID(1001+2*i)
		th.Turns = append(th.Turns,
			session.Turn{ID: q, Parent: parent, Role: session.User, Status: session.Done, Created: tuitest.Now, Body: &session.Body{Text: fmt.Sprintf("Question %d", i)}},
			session.Turn{ID: a, Parent: q, Role: session.Assistant, Status: session.Done, Created: tuitest.Now, Body: &session.Body{Text: answer}})
		parent, n = a, n+len(answer)
	}
	th.Branches = []session.Branch{{Name: "main", Leaf: parent, Tip: parent}}
	return th
}

// BenchmarkOpenLong: from the loaded thread to the first frame; under 200 ms.
func BenchmarkOpenLong(b *testing.B) {
	th, s := longThread(), open(b, "idle", 120, 40)
	s.f.Set(func(p *tui.Sample) { p.Turn = 0 })
	s.f.Put(th)
	for b.Loop() {
		s.press("f3", "enter")
		s.m.View()
	}
}

// BenchmarkScrollLong: a page up and its frame; 30 a second are 33 ms each.
func BenchmarkScrollLong(b *testing.B) {
	th, s := longThread(), open(b, "idle", 120, 40)
	s.f.Set(func(p *tui.Sample) { p.Turn = 0 })
	s.f.Put(th)
	s.press("f3", "enter")
	for b.Loop() {
		s.send(tea.KeyMsg{Type: tea.KeyPgUp})
		s.m.View()
	}
}
