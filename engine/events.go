package engine

import "time"

// A Listener receives what happens during Generate. Any function may be nil. They
// run on the goroutine of Generate, which waits for them.
type Listener struct {
	// Prefill is called when the prompt starts to be read, after every layer of
	// every pass, and when it is read.
	Prefill func(Progress)
	// Token is called for every generated token, the one that ends the reply
	// included, before it is fed back: what it returns decides. ErrPause stops
	// here without an error; any other error stops and is returned by Generate.
	Token func(Token) error
	// Layer is called after every layer while decoding.
	Layer func(layer, layers int)
}

// Progress says how far the prompt has been read.
type Progress struct {
	Tokens int // of the prompt
	Reused int // of those, seen before and not computed again
	Done   int // tokens read, the reused ones included
	Pass   int // tokens of the pass under way
	Layer  int // layers of that pass that are done
	Layers int
	// Bytes were read from drives so far, and Rate is what they give now, in bytes
	// per second: 0 for a model in memory. Two calls at once share both.
	Bytes int64
	Rate  float64
	// Elapsed is the time since the prompt was begun. Left is an estimate of what
	// remains, 0 while there is none.
	Elapsed, Left time.Duration
}

// Fraction is the share of the work that is done, 0 to 1.
func (p Progress) Fraction() float64 {
	work := p.Tokens - p.Reused
	if work <= 0 {
		return 1
	}
	done := float64(p.Done - p.Reused)
	if p.Layers > 0 {
		done += float64(p.Pass) * float64(p.Layer) / float64(p.Layers)
	}
	return done / float64(work)
}

// A Token is one generated token.
type Token struct {
	ID       int
	Position int  // in the sequence, from 0
	Index    int  // among the generated ones, from 0
	Stop     bool // it ends the reply
	// Elapsed is the time this token took, from the one before it or from the end
	// of the prompt.
	Elapsed time.Duration
}

// Finish says why Generate ended.
type Finish string

// The reasons.
const (
	// Stopped: the model ended its message.
	Stopped Finish = "stop"
	// Length: MaxTokens were generated.
	Length Finish = "length"
	// ContextFull: the model's context has no room for another token.
	ContextFull Finish = "context"
	// Paused: Listener.Token asked for it.
	Paused Finish = "paused"
	// Cancelled: the context of the call ended.
	Cancelled Finish = "cancelled"
	// Failed: an error ended it.
	Failed Finish = "error"
)
