package pane

import (
	"time"

	"deltafin/session"
)

// A State is what the engine is doing, as the header says it.
type State string

// The states. Setup and Loading come before there is a model, Restoring to Saving
// are work, the others are at rest.
const (
	Setup     State = "setup"     // there is no model yet
	Loading   State = "loading"   // a model is being opened
	Idle      State = "idle"      // ready for a question
	Restoring State = "restoring" // a saved state is read
	Prefill   State = "prefill"   // the prompt is read
	Thinking  State = "thinking"  // tokens of thinking arrive
	Decoding  State = "decoding"  // tokens of the answer arrive
	Saving    State = "saving"    // a state is saved
	Paused    State = "paused"    // an answer waits for Resume
	Stopped   State = "stopped"   // an error stopped the answer, which waits for Resume
)

// Busy reports whether an answer is under way.
func (s State) Busy() bool {
	switch s {
	case Restoring, Prefill, Thinking, Decoding, Saving:
		return true
	}
	return false
}

// opening says that there is no model yet.
func (s *Sample) opening() bool { return s.State == Setup || s.State == Loading }

// AtRest says that figures of the work are those of its end: none is under way.
func (s *Sample) AtRest() bool { return !s.State.Busy() && !s.opening() }

// inMemory says that the model reads nothing from drives.
func (s *Sample) inMemory() bool {
	return len(s.Drives) == 0 && s.Experts.Budget <= 0 && !s.opening() && (s.Layers > 0 || len(s.Tokens) > 0)
}

// A Sample is everything the screen shows of the work at one moment. Slices are
// read only and may be shared with other Samples; who publishes a Sample replaces
// a slice or appends to it, and never changes an element. A zero or nil part means
// "not known", and is drawn as such.
type Sample struct {
	Change   uint64 // grows whenever anything else in the Sample has changed
	State    State
	Verb     string // what the header says instead of the state's own word, "" for that word
	Marks    []Mark // what else the header says, the most urgent first
	Pausing  bool   // the answer stops after the token in hand
	ReadOnly bool   // another window drives the engine; this one watches

	Model   string // name for people
	Context int    // tokens the model can hold, 0 if not known
	Used    int    // of them used by the answer's branch

	Loading Progress // of State Loading
	Reading Reading  // of the prompt, in State Prefill

	Thread, Turn session.ID      // of the answer under way or ended last
	Branch       string          // of Thread
	Question     string          // that is being answered, "" for one that goes on
	Tokens       []session.Token // of the answer, those of earlier runs included
	Times        []time.Duration // each token of this run took, oldest first
	Rate         float64         // tokens a second over the last 30, 0 if not known
	Began, Ended time.Time       // of this run; Ended is zero while it goes on
	Answers      int             // that have come to an end since the start

	Layer, Layers int           // of the token in hand
	Token         TokenTime     // what the newest token's time went to
	Drives        []Drive       // in the order of their names; nil without streaming
	Prefetch      Prefetch      // of the newest answer
	Experts       Experts       // held in memory
	Memory        Memory        // of the process and the machine
	Queue         []QueueItem   // questions that wait, the next first
	NextIn        time.Duration // until the next question begins by itself, 0 if it does not

	// Card is what the user should know or decide; nil for nothing. One with another
	// Text is another card: it shows even if the one before was put away.
	Card *Card
	// Notice is one line about the work, "" for none.
	Notice string
}

// A Progress is a step of opening a model.
type Progress struct {
	Step  string        // "checking sizes"
	Share float64       // 0 to 1
	Took  time.Duration // since loading began
}

// A Reading is how far the prompt has been read.
type Reading struct {
	Tokens, Reused  int           // of the prompt, and of them taken from a saved state
	Pass, Passes    int           // chunk in hand, from 1
	Share           float64       // 0 to 1 over all passes
	Left            time.Duration // likely; 0 if not known
	LeftLow         time.Duration // about one in ten takes less
	LeftHigh        time.Duration // about one in ten takes more
	Rate, RateStart float64       // tokens/s now (60 s) and in the first minute, 0 if not known
}

// A TokenTime is where the time of a token went, in shares of 0 to 1.
type TokenTime struct {
	Took       time.Duration
	Read, Math float64
	Stall      []time.Duration // that each layer waited for drives, nil if not known
}

// A Drive is one drive's figures. Rates are bytes a second.
type Drive struct {
	Name        string
	Now         float64   // over the last second
	Ceiling     float64   // measured at the start, 0 if not known
	History     []float64 // one value a second, the newest last, at most 600; NaN for none
	P99         time.Duration
	Depth       int     // reads in flight
	Temperature float64 // degrees Celsius, 0 if not known
	Errors      int64   // reads that failed or did not match their checksum
	Retries     int64   // blocks read once more, here or elsewhere, since a read of them failed
	Lost        bool
}

// A Prefetch counts uses of experts: Hit was in memory, InTime was read ahead and
// there before use, Late was read ahead and waited for, Missed was not read ahead.
// Unused was read and dropped without use.
type Prefetch struct {
	Hit, InTime, Late, Missed, Unused int64
	Stall                             time.Duration // per token
	WorstLayer                        int           // the layer that waited longest, counted from 0
	WorstStall                        time.Duration // of that layer per token; 0 if not known
}

// Uses is the number of uses counted.
func (p Prefetch) Uses() int64 { return p.Hit + p.InTime + p.Late + p.Missed }

// HitRate is the share of uses that waited for nothing, 0 without uses.
func (p Prefetch) HitRate() float64 {
	if p.Uses() == 0 {
		return 0
	}
	return float64(p.Hit+p.InTime) / float64(p.Uses())
}

// Experts is the cache of experts.
type Experts struct {
	Held, Budget int64       // bytes
	Count, All   int         // experts held, and in the model
	Evictions    float64     // a second
	Reuse        float64     // share of the newest token's experts that were held already; 0 if not known
	Share        [][]float64 // [layers][parts] share held, 0 to 1; nil if not known
}

// Memory is in bytes; 0 if not known.
type Memory struct{ Used, Total, Others int64 }

// A QueueItem is a question that waits.
type QueueItem struct {
	ID     session.ID
	Text   string
	Likely time.Duration // that it will take, 0 if not known
}
