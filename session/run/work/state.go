package work

import (
	"time"

	"deltafin/engine"
	"deltafin/session"
	"deltafin/session/run"
)

// A Phase says what a Driver is doing.
type Phase string

// The phases.
const (
	Idle      Phase = "idle"
	Restoring Phase = "restoring" // a snapshot is read
	Prefill   Phase = "prefill"   // the prompt is read
	Thinking  Phase = "thinking"  // tokens of thinking arrive
	Decoding  Phase = "decoding"  // tokens of the answer arrive
	Saving    Phase = "saving"    // a snapshot is written
	Paused    Phase = "paused"    // an answer waits for Resume
	Stopped   Phase = "stopped"   // an error stopped an answer, which waits for Resume; see State.Err
)

// Busy reports whether an answer is under way.
func (p Phase) Busy() bool { return p != Idle && p != Paused && p != Stopped }

// A State is what a Driver was doing at one moment. It is read only: slices are
// shared with later states, which only append to them.
type State struct {
	Change  uint64 // grows with every state
	Phase   Phase
	Pausing bool // the answer stops after the token, or the pass of the prompt, in hand

	Thread, Turn session.ID // of the answer; Turn is zero before it is in the journal
	Branch       string     // that was asked for; "" is the one used last
	Question     string     // "" for an answer that goes on
	Settings     session.Settings
	Began        time.Time // this run of it

	Prefill engine.Progress // of the prompt; zero before it is read
	Answer  []session.Token // in the journal, those of earlier runs included
	Times   []time.Duration // each token of this run took
	TokenAt time.Time       // when the newest token came
	Thought time.Duration   // spent on thinking in this run
	Think   int             // tokens of Answer that are thinking
	Stage   run.Stage       // of Restoring and Saving

	Recovered bool       // the answer was found cut off: its process had died
	Notice    run.Notice // the newest one of this answer
	Err       error      // what stopped the last answer, or kept it from beginning
	Last      run.Result // of the last answer that ended
	Ended     time.Time  // when that was
	Answers   int        // that this Driver has brought to an end
	Next      time.Time  // when the next question of the queue is begun; zero: not by itself
}

// Rate is the tokens per second over the last n tokens of this run, 0 before
// there is one.
func (s *State) Rate(n int) float64 {
	var sum time.Duration
	last := s.Times[max(len(s.Times)-n, 0):]
	for _, d := range last {
		sum += d
	}
	if sum <= 0 {
		return 0
	}
	return float64(len(last)) / sum.Seconds()
}

// publish replaces the state by a changed copy. Writers take turns; readers never
// wait.
func (d *Driver) publish(change func(*State)) {
	d.pub.Lock()
	defer d.pub.Unlock()
	next := *d.state.Load()
	change(&next)
	next.Change++
	d.state.Store(&next)
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// Changed is closed when a state newer than those published before the call is
// there. To wait for something: take Changed, look at State, then wait.
func (d *Driver) Changed() <-chan struct{} {
	d.pub.Lock()
	defer d.pub.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

// State is what the Driver is doing.
func (d *Driver) State() *State { return d.state.Load() }

// Layer is the layer of the token or pass in hand. It is apart from State because
// it changes a hundred times as often.
func (d *Driver) Layer() (layer, layers int) {
	v := d.layer.Load()
	return int(v >> 32), int(uint32(v))
}

// listener turns the events of one answer into states.
func (d *Driver) listener() run.Listener {
	return run.Listener{
		Begin: func(turn session.ID, have []run.Token) {
			d.publish(func(s *State) {
				s.Turn, s.Answer, s.Think = turn, make([]session.Token, 0, len(have)+64), 0
				for _, t := range have {
					s.add(t)
				}
			})
		},
		Prefill: func(p engine.Progress) {
			d.layer.Store(uint64(p.Layer)<<32 | uint64(uint32(p.Layers)))
			d.publish(func(s *State) { s.Phase, s.Prefill = Prefill, p })
		},
		Token: func(t run.Token) {
			d.publish(func(s *State) {
				s.add(t)
				s.Times = append(s.Times, t.Elapsed)
				s.TokenAt = d.opt.Now()
				s.Phase = s.phaseOf(t.Channel)
				if s.Phase == Thinking {
					s.Thought += t.Elapsed
				}
			})
		},
		Layer: func(layer, layers int) { d.layer.Store(uint64(layer)<<32 | uint64(uint32(layers))) },
		Stage: func(st run.Stage) {
			d.publish(func(s *State) {
				s.Stage, s.Phase = st, Saving
				if st.Kind == run.StageRestore {
					s.Phase = Restoring
				}
			})
		},
		Notice: func(n run.Notice) { d.publish(func(s *State) { s.Notice = n }) },
	}
}

// add appends a token. The array is shared with older states, which end before it.
func (s *State) add(t run.Token) {
	s.Answer = append(s.Answer, t.Token)
	if t.Channel == session.InThinking {
		s.Think++
	}
}

// phaseOf is what a token of a channel belongs to: markup to what it is in the
// middle of, which at the beginning is what the settings ask for.
func (s *State) phaseOf(c session.Channel) Phase {
	switch {
	case c == session.InThinking:
		return Thinking
	case c == session.InAnswer, s.Think < len(s.Answer)-1 && s.Phase != Thinking, s.Settings.Effort == run.NoThinking:
		return Decoding
	}
	return Thinking
}
