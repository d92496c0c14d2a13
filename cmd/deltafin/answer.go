package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/engine/tokenizer"
)

// An answer shows one generation as it happens and sums it up at the end.
type answer struct {
	s      streams
	f      *askFlags
	e      *engine.Engine
	status *statusLine
	out    *bufio.Writer
	loaded time.Duration
	began  engine.Stats // counters of the engine before

	reply *engine.Reply     // nil with --raw
	raw   *tokenizer.Stream // with --raw
	text  strings.Builder   // of --raw

	thinkBegun  time.Time
	thinkTokens int
	thinkLine   string // last line of the thinking, for the folded view
	inThink     bool
	wrote       bool // something of the answer is on standard output
	endsLine    bool // and it ended with a line feed
	writeErr    error
}

func newAnswer(e *engine.Engine, s streams, f *askFlags) *answer {
	a := &answer{s: s, f: f, e: e, began: e.Stats(), status: newStatus(s), out: bufio.NewWriter(s.out)}
	if f.raw {
		a.raw = e.Tokenizer().NewStream()
	} else {
		a.reply = e.NewReply(!f.noThink)
		a.inThink = !f.noThink
	}
	return a
}

func (a *answer) listener() engine.Listener {
	return engine.Listener{Prefill: a.prefill, Token: a.token}
}

func (a *answer) prefill(p engine.Progress) {
	if a.f.jsonl {
		if p.Layer == p.Layers || p.Pass == 0 {
			a.event(map[string]any{"event": "prefill", "tokens": p.Tokens, "done": p.Done, "reused": p.Reused,
				"fraction": p.Fraction(), "elapsed_s": p.Elapsed.Seconds()})
		}
	}
	a.status.set("reading the question: %.0f %% of %d tokens, layer %d of %d, about %s left",
		100*p.Fraction(), p.Tokens, p.Layer, p.Layers, duration(p.Left))
}

// token shows one token. An output that cannot be written ends the generation.
func (a *answer) token(t engine.Token) error {
	if t.Index == 0 {
		a.thinkBegun = time.Now()
		a.status.clear()
	}
	if a.f.jsonl {
		piece, _ := a.e.Tokenizer().Bytes(t.ID)
		a.event(map[string]any{"event": "token", "id": t.ID, "position": t.Position, "bytes": piece, "elapsed_s": t.Elapsed.Seconds()})
	}
	if a.raw != nil {
		text, err := a.raw.Add(t.ID)
		if err != nil {
			return err
		}
		if t.Stop {
			text = ""
		}
		a.text.WriteString(text)
		a.show(text)
		return a.flush()
	}
	if a.inThink {
		a.thinkTokens++
	}
	events, err := a.reply.Add(t.ID)
	if err != nil {
		return err
	}
	a.events(events)
	return a.flush()
}

// events shows what a token completed.
func (a *answer) events(events []chat.Event) {
	for _, ev := range events {
		if a.f.jsonl {
			a.event(map[string]any{"event": ev.Kind.String(), "text": ev.Text, "call": ev.Call, "name": ev.Name})
		}
		switch ev.Kind {
		case chat.ThinkDelta:
			a.think(ev.Text)
		case chat.ThinkEnd:
			a.foldThinking()
		case chat.Relabel, chat.ResponseDelta:
			a.foldThinking()
			a.show(ev.Text)
		case chat.ToolCallStart:
			a.foldThinking()
			a.note("the model calls the tool %q", ev.Name)
		}
	}
}

// think shows thinking: in full, or as one line that is alive.
func (a *answer) think(text string) {
	if a.f.thinking {
		if a.s.errTTY {
			text = printable(text)
		}
		fmt.Fprint(a.s.err, text)
		return
	}
	a.thinkLine += text
	if i := strings.LastIndexByte(strings.TrimRight(a.thinkLine, "\n"), '\n'); i >= 0 {
		a.thinkLine = a.thinkLine[i+1:]
	}
	a.status.set("thinking, %d tokens, %s: %s", a.thinkTokens, duration(time.Since(a.thinkBegun)), strings.TrimSpace(a.thinkLine))
}

// foldThinking leaves one line of the thinking behind.
func (a *answer) foldThinking() {
	if !a.inThink {
		return
	}
	a.inThink = false
	a.status.clear()
	if a.f.json || a.f.jsonl {
		return
	}
	if a.f.thinking {
		fmt.Fprintln(a.s.err)
	}
	fmt.Fprintf(a.s.err, "thought for %s, %d tokens\n", duration(time.Since(a.thinkBegun)), a.thinkTokens)
}

// show prints a piece of the answer.
func (a *answer) show(text string) {
	if text == "" || a.f.json || a.f.jsonl {
		return
	}
	if a.s.outTTY {
		text = printable(text)
	}
	a.status.clear()
	_, err := a.out.WriteString(text)
	a.keep(err)
	a.wrote, a.endsLine = true, strings.HasSuffix(text, "\n")
}

func (a *answer) event(v any) { a.keep(writeJSON(a.out, v)) }

func (a *answer) keep(err error) {
	if a.writeErr == nil && err != nil {
		a.writeErr = fmt.Errorf("writing the answer: %w", err)
	}
}

// flush makes what was shown visible now.
func (a *answer) flush() error {
	a.keep(a.out.Flush())
	return a.writeErr
}

func (a *answer) note(format string, args ...any) {
	a.status.clear()
	fmt.Fprintf(a.s.err, format+"\n", args...)
}

// close ends the output of text.
func (a *answer) close() {
	a.status.clear()
	if a.reply != nil {
		a.events(a.reply.Close())
		a.foldThinking()
	} else {
		rest := a.raw.Flush()
		a.text.WriteString(rest)
		a.show(rest)
	}
	if a.wrote && !a.endsLine {
		a.show("\n")
	}
}

// report prints the summary for programs.
func (a *answer) report(sum summary) {
	switch {
	case a.f.json:
		a.event(sum)
	case a.f.jsonl:
		a.event(struct {
			Event string `json:"event"`
			summary
		}{"done", sum})
	}
}

// finish ends the output and says how it went. The error decides the exit code.
func (a *answer) finish(ctx context.Context, req engine.Request, res engine.Result, err error) error {
	a.close()
	timeUp := errors.Is(err, errTimeout)
	if err == nil || ctx.Err() != nil || timeUp {
		a.report(a.summary(req, res))
	}
	if werr := a.flush(); werr != nil && err == nil {
		err = werr
	}
	switch {
	case ctx.Err() != nil:
		a.note("interrupted after %d tokens", len(res.Tokens))
		return errReported
	case timeUp:
		a.note("stopped after %d tokens: %v", len(res.Tokens), errTimeout)
		return nil
	case err != nil:
		return err
	}
	if !a.f.json && !a.f.jsonl {
		a.sumUp(res)
	}
	return nil
}

// sumUp says on standard error how it went.
func (a *answer) sumUp(res engine.Result) {
	end := ""
	switch res.Finish {
	case engine.Length:
		end = fmt.Sprintf("; stopped at --max-tokens %d", a.f.maxTokens)
	case engine.ContextFull:
		end = "; the context is full"
	}
	fmt.Fprintf(a.s.err, "%d tokens read in %s, %d written in %s, %.1f tokens/s%s\n", res.Prefilled, duration(res.PrefillTime),
		len(res.Tokens), duration(res.DecodeTime), rate(len(res.Tokens)-1, res.DecodeTime), end)
	a.f.model.draft.of(a.e, a.began).print(a.s.err)
}
