package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"deltafin/session"
	"deltafin/session/run"
)

// Options say how a Driver works. The zero value is right for a person.
type Options struct {
	// OtherModel goes on with threads that were made with other weights.
	OtherModel bool
	// MaxTokens bounds an answer in a new thread; 0 stands for no bound.
	MaxTokens int
	// Gap is the pause between an answer and the next question of the queue, in
	// which a person can step in; 0 stands for DefaultGap, negative for none.
	Gap time.Duration
	// Now and After are the clock; those of package time by default.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

// DefaultGap is the default of Options.Gap.
const DefaultGap = 5 * time.Second

// lookAgain is the longest wait for a held question: the queue is shared with
// other processes, which tell nobody what they add.
const lookAgain = time.Minute

// Errors a caller decides on.
var (
	// ErrNothing: there is no answer that could be paused or could go on.
	ErrNothing = errors.New("nothing to do")
	// ErrStopping: the Driver is ending and takes no more work.
	ErrStopping = errors.New("the program is ending; the queue keeps what is added to it")
)

// A Question is something to ask.
type Question struct {
	Thread  session.ID // zero: a new thread
	Branch  string     // "" is the one used last
	Text    string
	Folder  string // of a new thread
	Sources []session.Source
	// Change alters how the answer is made, from how the branch was answered last
	// or from the model's defaults; nil leaves it. The queue keeps no seed.
	Change func(*run.How)
}

// A kind is what a job asks of the Runner.
type kind int

const (
	ask        kind = iota // q, a new question
	queued                 // the queue's question item
	proceed                // go on with the answer at the end of a branch
	regenerate             // answer anew what turn answered
)

// A job is one thing for the loop to do, in the thread and on the branch of q.
type job struct {
	kind kind
	q    Question
	turn session.ID // of regenerate
	item session.QueueItem
}

// A Driver answers questions one after the other.
type Driver struct {
	store *session.Store
	r     *run.Runner
	opt   Options

	state atomic.Pointer[State]
	layer atomic.Uint64

	pub     sync.Mutex // held while state is replaced; guards below
	changed chan struct{}

	wake chan struct{} // something below has changed
	stop chan struct{}

	mu      sync.Mutex // guards below
	ended   bool       // stop is closed
	flow    bool       // the queue may be taken from
	waiting []job
	pause   chan struct{} // of the answer under way; nil without one
}

// New returns a Driver that is idle. store must be open for writing.
func New(store *session.Store, r *run.Runner, opt Options) *Driver {
	if opt.Gap == 0 {
		opt.Gap = DefaultGap
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.After == nil {
		opt.After = time.After
	}
	d := &Driver{store: store, r: r, opt: opt, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	d.state.Store(&State{Phase: Idle})
	return d
}

// Run works until Stop, or until ctx ends, which breaks off the token in hand. What
// concerns one answer is in State.Err; Run returns what makes any work
// impossible.
func (d *Driver) Run(ctx context.Context) error {
	for {
		j, pause, timer, err := d.next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if j != nil {
			d.answer(ctx, *j, pause)
			continue
		}
		select {
		case <-d.wake:
		case <-timer:
		case <-d.stop:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// Offer publishes the newest answer that was cut short, if there is one, so that
// Resume goes on with it. Call it before Run.
func (d *Driver) Offer(ctx context.Context) error {
	list, err := d.store.Unfinished(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	th, err := d.store.Load(ctx, list[0].ID, session.LoadOptions{})
	if err != nil {
		return err
	}
	b, err := th.FindBranch("")
	if err != nil {
		return err
	}
	t := th.Turn(b.Leaf)
	if t == nil || t.Role != session.Assistant {
		return nil
	}
	toks, status, err := d.store.Tokens(ctx, th.ID, t.ID, 0)
	if err != nil {
		return err
	}
	d.publish(func(s *State) {
		s.Phase, s.Thread, s.Turn, s.Settings = Paused, th.ID, t.ID, t.Settings
		s.Answer, s.Recovered = toks, status == session.Writing
		for _, tok := range toks {
			if tok.Channel == session.InThinking {
				s.Think++
			}
		}
	})
	return nil
}

// next picks what to do and counts it as under way, in one step: whoever asks
// sees it either waiting or being answered. Without anything, timer says when to
// look again.
func (d *Driver) next(ctx context.Context) (j *job, pause chan struct{}, timer <-chan time.Time, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended || ctx.Err() != nil {
		return nil, nil, nil, nil
	}
	if len(d.waiting) > 0 {
		j, d.waiting = &d.waiting[0], d.waiting[1:]
	} else if d.flow {
		j, timer, err = d.nextQueued(ctx)
	}
	if j != nil {
		pause = make(chan struct{})
		d.pause = pause
	}
	return j, pause, timer, err
}

// nextQueued picks the question of the queue whose turn it is. The caller holds mu.
func (d *Driver) nextQueued(ctx context.Context) (*job, <-chan time.Time, error) {
	now := d.opt.Now()
	q, ok, wake, err := d.store.NextQueued(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	st := d.State()
	switch gap := st.Ended.Add(max(d.opt.Gap, 0)).Sub(now); {
	case ok && !st.Ended.IsZero() && gap > 0:
		d.publish(func(s *State) { s.Next = now.Add(gap) })
		return nil, d.opt.After(gap), nil
	case ok:
		return &job{kind: queued, item: q, q: Question{Thread: q.Thread, Branch: q.Branch, Text: q.Text}}, nil, nil
	case !wake.IsZero():
		d.publish(func(s *State) { s.Next = wake })
		return nil, d.opt.After(min(max(wake.Sub(now), 0), lookAgain)), nil
	}
	if !st.Next.IsZero() {
		d.publish(func(s *State) { s.Next = time.Time{} })
	}
	return nil, nil, nil
}

// answer does one job and publishes how it ended. Closing pause stops it.
func (d *Driver) answer(ctx context.Context, j job, pause chan struct{}) {
	now := d.opt.Now()
	d.publish(func(s *State) {
		*s = State{Change: s.Change, Last: s.Last, Ended: s.Ended, Answers: s.Answers,
			Pausing: s.Pausing, Phase: Restoring, Thread: j.q.Thread, Branch: j.q.Branch, Question: j.q.Text, Began: now}
	})
	res, err := d.run(ctx, j, run.Request{Branch: j.q.Branch, Pause: pause, OtherModel: d.opt.OtherModel})
	if err != nil && res.Turn == 0 && j.kind == queued && res.Thread != 0 {
		// The question has left the queue and nothing of an answer is in its thread.
		text := fmt.Sprintf("the question could not be answered: %v", err)
		err = errors.Join(err, d.store.AddEvent(context.WithoutCancel(ctx), res.Thread, 0, run.NoticeError, text))
	}
	d.mu.Lock()
	d.pause = nil
	// An answer that ended lets the queue go on; one that was paused or failed
	// waits for a person, and so does the queue.
	d.flow = err == nil && res.Status == session.Done
	d.mu.Unlock()
	d.publish(func(s *State) {
		s.Pausing, s.Err, s.Phase, s.Ended = false, err, Idle, d.opt.Now()
		if res.Turn != 0 {
			s.Last, s.Turn, s.Thread = res, res.Turn, res.Thread
		}
		switch {
		case err == nil && res.Status == session.Done:
			s.Answers++
		case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, session.ErrFull):
			s.Phase = Stopped
		case res.Turn != 0:
			s.Phase = Paused
		}
	})
}

// run locks the thread of a job and calls the Runner.
func (d *Driver) run(ctx context.Context, j job, req run.Request) (res run.Result, err error) {
	w, err := d.lock(ctx, &j)
	if err != nil {
		return res, err
	}
	defer func() {
		if cerr := w.Close(); cerr != nil && !errors.Is(cerr, session.ErrFull) {
			err = errors.Join(err, cerr)
		}
	}()
	d.publish(func(s *State) { s.Thread, s.Recovered = w.Thread(), w.Recovered() != nil })
	l := d.listener()
	if j.kind == proceed {
		return d.r.Continue(ctx, w, 0, req, l)
	}
	how, err := d.how(ctx, w.Thread(), j.q.Branch)
	if err != nil {
		return res, err
	}
	if set := j.item.Settings; set != (session.Settings{}) {
		how = run.How{Settings: set}
	}
	if j.q.Change != nil {
		j.q.Change(&how)
	}
	d.publish(func(s *State) { s.Settings = how.Settings })
	switch j.kind {
	case regenerate:
		return d.r.Regenerate(ctx, w, j.turn, how, req, l)
	case queued:
		return d.r.Answer(ctx, w, how, req, l)
	}
	return d.r.Ask(ctx, w, session.NewTurn{Role: session.User, Text: j.q.Text, Sources: j.q.Sources}, how, req, l)
}

// lock takes the thread of a job, made here for a new one. A question of the queue
// moves into it by that.
func (d *Driver) lock(ctx context.Context, j *job) (*session.Writer, error) {
	if j.kind == queued {
		w, _, err := d.store.TakeQueued(ctx, j.item.ID)
		return w, err
	}
	if j.q.Thread == 0 {
		info, err := d.store.Create(ctx, "", j.q.Folder)
		if err != nil {
			return nil, err
		}
		j.q.Thread = info.ID
	}
	return d.store.Lock(ctx, j.q.Thread)
}

// how is how a branch was answered last, or the defaults.
func (d *Driver) how(ctx context.Context, thread session.ID, branch string) (run.How, error) {
	th, err := d.store.Load(ctx, thread, session.LoadOptions{})
	if err != nil && !errors.Is(err, session.ErrCorrupt) {
		return run.How{}, err
	}
	b, err := th.FindBranch(branch)
	if err != nil {
		return run.How{}, err
	}
	var how run.How
	for _, t := range th.Path(b.Leaf) {
		if t.Role == session.Assistant {
			how = run.How{Settings: t.Settings, Seed: t.Seed}
		}
	}
	if how.Settings == (session.Settings{}) {
		how.Settings = d.r.Defaults()
		how.Settings.MaxTokens = d.opt.MaxTokens
	}
	return how, nil
}

var errBusy = fmt.Errorf("an answer is under way; pause it first: %w", ErrNothing)
