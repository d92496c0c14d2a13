package session

import (
	"fmt"
	"sync"
	"testing"
)

// TestManyOpenAtOnce: several programs may be the first to start.
func TestManyOpenAtOnce(t *testing.T) {
	for range 3 {
		dir := t.TempDir()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				s, err := Open(t.Context(), dir, nil)
				if err != nil {
					t.Errorf("opening: %v", err)
					return
				}
				if _, err := s.Create(t.Context(), fmt.Sprint(i), ""); err != nil {
					t.Errorf("creating: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Errorf("closing: %v", err)
				}
			})
		}
		wg.Wait()
		s := reopen(t, dir, nil)
		if n := len(must[[]ThreadInfo](t)(s.List(t.Context(), ListOptions{}))); n != 6 {
			t.Errorf("%d threads, want 6", n)
		}
		sound(t, s)
	}
}

// TestManyAtOnce: threads are written and read side by side, each as if alone.
func TestManyAtOnce(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	const writers, tokens = 4, 60
	ids := make([]ID, writers)
	for i := range ids {
		ids[i] = must[ThreadInfo](t)(s.Create(ctx, "", "")).ID
	}
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for i := range writers {
		writing.Go(func() {
			w, err := s.Lock(ctx, ids[i])
			if err != nil {
				t.Error(err)
				return
			}
			say := NewTurn{Role: User, Text: fmt.Sprint("question ", i)}
			if _, err := w.Append(ctx, "", say); err != nil {
				t.Error(err)
			}
			a, err := w.Begin(ctx, AnswerOptions{Seed: uint64(i)})
			if err != nil {
				t.Error(err)
				return
			}
			for n := range tokens {
				if _, err := a.Append(ctx, Token{ID: int32(n), Channel: InAnswer, Text: fmt.Sprint(i, "-", n, " ")}); err != nil {
					t.Error(err)
				}
			}
			if err := a.Finish(ctx, Outcome{Status: Done}); err != nil {
				t.Error(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				th, err := s.Load(ctx, ids[i], LoadOptions{Bodies: true})
				if err != nil {
					t.Error(err)
					return
				}
				for _, turn := range th.Turns {
					for n, tok := range turn.Body.Tokens {
						if tok.Text != fmt.Sprint(i, "-", n, " ") {
							t.Errorf("thread %d, token %d: %q", i, n, tok.Text)
							return
						}
					}
				}
				if _, err := s.Search(ctx, "question", SearchOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	for _, id := range ids {
		if th := must[*Thread](t)(s.Load(ctx, id, LoadOptions{Bodies: true})); len(th.Turns) != 2 || len(th.Turns[1].Body.Tokens) != tokens {
			t.Errorf("thread %s: %d turns", id.Short(), len(th.Turns))
		}
	}
	sound(t, s)
}
