package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/session"
)

// Options say how a Runner keeps states. Snapshots must be set.
type Options struct {
	// Snapshots is the folder for snapshots, made when it is missing. It may lie
	// on any drive.
	Snapshots string
	// Budget is how many bytes the snapshots of all threads may take; 0 stands
	// for DefaultBudget. The least valuable ones make room.
	Budget int64
	// Interval is how long an answer may run without a snapshot; 0 stands for
	// DefaultInterval.
	Interval time.Duration
	// LongPrefill is how many tokens must have been read in one go to be worth a
	// snapshot at once; 0 stands for DefaultLongPrefill. A system prompt of that
	// length gets its own, so that other threads can begin with it.
	LongPrefill int
	// Now is the clock of Interval and of the queue; time.Now by default. It may
	// jump: a clock set back delays the next snapshot by one Interval at most.
	Now func() time.Time
	// After is how the queue waits for a held question; time.After by default.
	After func(time.Duration) <-chan time.Time
}

// The defaults of Options. A state of the full model is 0.4 to 8 GB, so the
// budget holds a good dozen threads. Reading 512 tokens takes minutes there,
// keeping them half a second.
const (
	DefaultBudget      = 20e9
	DefaultInterval    = 10 * time.Minute
	DefaultLongPrefill = 512
)

func (o Options) withDefaults() (Options, error) {
	if o.Snapshots == "" {
		return o, errors.New("no folder for snapshots was given")
	}
	if o.Budget < 0 || o.Interval < 0 || o.LongPrefill < 0 {
		return o, fmt.Errorf("snapshots: a budget of %d bytes, an interval of %v, %d tokens: none may be negative", o.Budget, o.Interval, o.LongPrefill)
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.LongPrefill == 0 {
		o.LongPrefill = DefaultLongPrefill
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return o, nil
}

// A Runner answers questions of threads with one engine. It may be used from
// several goroutines; it needs no closing.
type Runner struct {
	store   *session.Store
	e       *engine.Engine
	info    engine.Info
	markers chat.Markers
	opt     Options

	// picked, set by tests, hears of a token before the journal does.
	picked func(index int)

	turn chan struct{} // holds one value while no answer is under way; guards below
	seq  *engine.Sequence
	cost time.Duration // what seq cost to compute
}

// New returns a Runner. store must be open for writing.
func New(store *session.Store, e *engine.Engine, opt Options) (*Runner, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	// 0700: a state holds what the conversation was about.
	if err := os.MkdirAll(opt.Snapshots, 0o700); err != nil {
		return nil, fmt.Errorf("preparing the folder for snapshots: %w", err)
	}
	m, err := chat.FindMarkers(e.Tokenizer())
	if err != nil {
		return nil, err
	}
	r := &Runner{store: store, e: e, info: e.Info(), markers: m, opt: opt, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r, nil
}

// acquire waits until no other answer is under way. release gives the turn back.
func (r *Runner) acquire(ctx context.Context) error {
	select {
	case <-r.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Runner) release() { r.turn <- struct{}{} }

// NoThinking is the Effort of an answer without thinking.
const NoThinking = "none"

// Defaults are the settings of a first question for which nothing was chosen:
// the sampling that the model's makers advise, and as much thought as it likes.
func (r *Runner) Defaults() session.Settings {
	p := r.e.Sampling()
	return r.stamp(session.Settings{Temperature: p.Temperature, TopP: p.TopP, Effort: string(chat.EffortMax)})
}

// stamp notes in settings what they are used with.
func (r *Runner) stamp(set session.Settings) session.Settings {
	set.Model, set.Fingerprint, set.KernelSet = r.info.Name, r.info.Fingerprint, r.info.Arithmetic
	return set
}

// effort reads the Effort of settings.
func effort(set session.Settings) (e chat.Effort, thinking bool, err error) {
	if set.Effort == NoThinking {
		return "", false, nil
	}
	e, err = chat.ParseEffort(set.Effort)
	return e, true, err
}
