package run

import (
	"sync"
	"time"

	"deltafin/engine"
	"deltafin/session"
)

// A Listener receives what happens during a run. Any function may be nil. They
// are called one at a time, some on a goroutine of the journal, and hold the run
// up: hand work over, do not do it there. None may call the Runner.
type Listener struct {
	// Begin is called when the answer is entered in the journal, before the
	// prompt is read, with the tokens it already has.
	Begin func(turn session.ID, have []Token)
	// Prefill is called as the prompt is read; see engine.Progress.
	Prefill func(engine.Progress)
	// Token is called for every token that is on the disk, in order.
	Token func(Token)
	// Layer is called after every layer while decoding.
	Layer func(layer, layers int)
	// Stage is called before something that may take long.
	Stage func(Stage)
	// Notice is called for what a person should know. It is noted with the
	// thread as well.
	Notice func(Notice)
}

// A Token is a token of an answer that is in the journal.
type Token struct {
	session.Token
	Index    int           // in the answer, from 0
	Position int           // in the whole sequence, from 0
	Stop     bool          // it ends the reply
	Elapsed  time.Duration // it took, from the token before or the end of the prompt; 0 for one that was there before this run
}

// A Stage is something that takes a while and is no progress by itself.
type Stage struct {
	Kind   string // StageRestore or StageSave
	Tokens int    // of the snapshot
	Bytes  int64
}

// The kinds of stages.
const (
	StageRestore = "restore" // a snapshot is read
	StageSave    = "save"    // a snapshot is written
)

// A Notice is something out of the ordinary that a person should know.
type Notice struct {
	Kind string // one of the Notice constants
	Text string // a sentence for the user
}

// The kinds of notices; events of a thread bear the same names.
const (
	NoticeSnapshotLost    = "snapshot-lost"    // missing, damaged or foreign: the text is read again
	NoticeSnapshotUnsaved = "snapshot-unsaved" // one could not be written
	NoticeArithmetic      = "arithmetic"       // the thread comes from a build that computes differently
	NoticeModel           = "model-replaced"   // the thread goes on with other weights
	NoticeEffort          = "effort-changed"   // the whole thread is read again
	NoticePaused          = "paused"           // stopped in the middle, resumable
	NoticeError           = "error"            // an error stopped the answer
)

// A speaker calls a Listener, one function at a time.
type speaker struct {
	mu sync.Mutex // guards below
	l  Listener
}

func (s *speaker) begin(turn session.ID, have []Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.l.Begin != nil {
		s.l.Begin(turn, have)
	}
}

func (s *speaker) prefill(p engine.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.l.Prefill != nil {
		s.l.Prefill(p)
	}
}

func (s *speaker) token(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.l.Token != nil {
		s.l.Token(t)
	}
}

func (s *speaker) layer(layer, layers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.l.Layer != nil {
		s.l.Layer(layer, layers)
	}
}

func (s *speaker) stage(st Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.l.Stage != nil {
		s.l.Stage(st)
	}
}

func (s *speaker) notice(n Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.l.Notice != nil {
		s.l.Notice(n)
	}
}

// A publisher holds tokens back until the journal has them.
type publisher struct {
	out *speaker

	mu      sync.Mutex // guards below
	waiting []Token    // by Index, ascending
}

// add takes a token that is about to be journalled.
func (p *publisher) add(t Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, t)
}

// durable publishes what the journal has: the first n tokens of the answer.
func (p *publisher) durable(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) > 0 && p.waiting[0].Index < n {
		p.out.token(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}
