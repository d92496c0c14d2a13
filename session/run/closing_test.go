package run

import (
	"slices"
	"strings"
	"testing"

	"deltafin/engine/chat"
	"deltafin/session"
)

// TestClosingCompletesAnyCut: an answer that stops after any of its tokens is
// completed so that the model reads a whole message with the text so far.
func TestClosingCompletesAnyCut(t *testing.T) {
	b := newBench(t, Options{})
	for _, thinking := range []bool{true, false} {
		set := session.Settings{Effort: "low"}
		if !thinking {
			set.Effort = NoThinking
		}
		msg := chat.Message{Role: chat.Assistant, Content: "One, two. Three!"}
		if thinking {
			msg.Reasoning = "They want me to count."
		}
		open := must[[]int](t)(b.r.opening(set))
		ids := must[[]int](t)(b.r.encode(chat.Prompt{Thinking: thinking, Messages: []chat.Message{msg}}))[len(open):]
		for n := 1; n <= len(ids); n++ {
			end := must[[]int](t)(b.r.closing(ids[:n], set))
			reply := b.e.NewReply(thinking)
			for _, id := range append(slices.Clone(ids[:n]), end...) {
				must[[]chat.Event](t)(reply.Add(id))
			}
			r := reply.Reply()
			if !r.Complete || !strings.HasPrefix(msg.Content, r.Response) || !strings.HasPrefix(msg.Reasoning, r.Thinking) {
				t.Fatalf("cut after %d: %+v", n, r)
			}
			// The text is the one the format gives for such a message: no tag is
			// left half-written, and the response is there even if it is empty.
			got := must[string](t)(b.e.Tokenizer().Decode(append(append(slices.Clone(open), ids[:n]...), end...)))
			whole := must[[]int](t)(b.r.encode(chat.Prompt{Thinking: thinking, Messages: []chat.Message{
				{Role: chat.Assistant, Reasoning: r.Thinking, Content: r.Response}}}))
			if want := must[string](t)(b.e.Tokenizer().Decode(whole)); got != want {
				t.Fatalf("cut after %d:\n%s\nwant\n%s", n, got, want)
			}
		}
	}
}

// TestBreakIn: pause and ask again. The thread goes on after what there was, and
// what the model has seen is not read again.
func TestBreakIn(t *testing.T) {
	b := newBench(t, Options{})
	id := b.thread()
	w := b.lock(id)
	pause := make(chan struct{})
	l := b.listener()
	token := l.Token
	l.Token = func(tok Token) {
		token(tok)
		if tok.Index == 20 {
			close(pause)
		}
	}
	first, err := b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), b.greedy(), Request{Pause: pause}, l)
	check(t, err)
	res, err := b.r.Ask(t.Context(), w, user("Name four fruits."), b.greedy(), Request{}, b.listener())
	check(t, err)
	check(t, w.Close())
	th := must[*session.Thread](t)(b.s.Load(t.Context(), id, session.LoadOptions{Bodies: true}))
	cut := th.Turns[1]
	if first.Status != session.Paused || cut.Status != session.Interrupted || len(cut.Body.Tokens) != first.Tokens {
		t.Errorf("%+v, %+v", first, cut)
	}
	before := append(slices.Clone(first.Prompt), ints(cut.Body.IDs())...)
	if !slices.Equal(res.Prompt[:len(before)], before) || res.Timing.Reused != len(before)-1 {
		t.Errorf("reused %d of %d", res.Timing.Reused, len(before))
	}
}
