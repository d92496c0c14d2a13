package session

import (
	"fmt"
	"slices"
	"time"
)

// A Role says who speaks in a turn.
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// A Status says how far a turn has come. Every status is a legal state of a
// thread at rest: an answer cut anywhere can be read, forked and continued.
type Status string

// The states of a turn.
const (
	Writing     Status = "writing"     // tokens are arriving, or the writer died
	Paused      Status = "paused"      // stopped in the middle; goes on where it stopped
	Done        Status = "done"        // ended by itself
	Interrupted Status = "interrupted" // ended early because the user broke in
	Failed      Status = "failed"      // ended by an error; the events say which
)

// Open reports whether the turn may still receive tokens.
func (s Status) Open() bool { return s == Writing || s == Paused }

// A Channel says which part of a turn a token belongs to.
type Channel uint8

// The channels of a turn.
const (
	InMarkup   Channel = iota // markup of the chat format and prompt tokens: no text of its own
	InThinking                // reasoning, shown folded
	InAnswer                  // what the reader came for
)

// A Token is one id with the piece of text it stands for. Text holds bytes: a
// character may span two tokens. Markup has no text.
type Token struct {
	ID      int32
	Channel Channel
	Text    string
}

// Settings are what an answer was, or is to be, made with. Together with the
// token ids and the seed they determine the text.
type Settings struct {
	Model       string  `json:"model,omitempty"`       // name for people
	Fingerprint string  `json:"fingerprint,omitempty"` // identity of the weights
	KernelSet   string  `json:"kernel_set,omitempty"`  // identity of the arithmetic
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p,omitempty"`
	Effort      string  `json:"effort,omitempty"` // how long to think
	MaxTokens   int     `json:"max_tokens,omitempty"`
}

// A ThreadInfo is a thread without its text.
type ThreadInfo struct {
	ID          ID
	Title       string
	Named       bool   // the title was given by the user, not taken from the first question
	Folder      string // working folder at creation
	Created     time.Time
	Updated     time.Time // last turn begun or ended
	TurnCount   int
	Tokens      int // over all turns and branches
	BranchCount int
	Branch      string   // the branch used last
	Status      Status   // of the newest turn; "" for an empty thread
	Settings    Settings // of the newest answer; what a continuation uses by default
	Trashed     bool
}

// A Branch is a named leaf of a thread's tree of turns.
type Branch struct {
	Name    string
	Leaf    ID // zero while empty
	Tip     ID // where redo leads: the leaf before undo, else equal to Leaf
	Created time.Time
}

// An Origin tells from what a turn was derived: the turn it replaces or was
// cut from, and, when cut inside an answer, how many of its tokens it kept.
type Origin struct {
	Turn   ID
	Tokens int // kept tokens; 0 for an edited or regenerated turn
}

// A Turn is one message of a thread. Its Body is loaded only where a function
// says so.
type Turn struct {
	ID       ID
	Parent   ID // zero for the first turn
	Role     Role
	Status   Status
	Created  time.Time
	Ended    time.Time // zero while open
	Tokens   int
	Thinking int // of them thinking
	Seed     uint64
	Settings Settings // answers only
	Origin   *Origin
	Stop     string // why an answer ended: "end", "length", "context"...
	Body     *Body
	Sources  []Source
	Timings  []Timing
}

// A Body is the text of a turn and the tokens that were fed or generated.
//
// For an answer, Text is the concatenation of its InAnswer tokens and
// Reasoning that of its InThinking tokens. For a question, Text is what the user typed and
// Tokens, all InMarkup, are what was fed for it; a question not yet rendered
// for the model has none.
type Body struct {
	Text      string
	Reasoning string
	Tokens    []Token
}

// IDs returns the token ids in order.
func (b *Body) IDs() []int32 {
	ids := make([]int32, len(b.Tokens))
	for i, t := range b.Tokens {
		ids[i] = t.ID
	}
	return ids
}

// A Source is something a turn rested on: an attached file, a page, a note.
type Source struct {
	Hash   string `json:"hash"` // content address
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"`  // "file", "page", "note"
	Place  string `json:"place,omitempty"` // path or address it came from
	Bytes  int64  `json:"bytes,omitempty"`
	Tokens int    `json:"tokens,omitempty"`
	Range  string `json:"range,omitempty"` // the part used, such as "1-4000"
}

// A Timing is what one run of an answer cost. An answer that was paused has
// one for each run.
type Timing struct {
	Started  time.Time     `json:"started"`
	Reused   int           `json:"reused"`  // prompt tokens taken from a snapshot
	Prefill  int           `json:"prefill"` // prompt tokens computed
	PrefillT time.Duration `json:"prefill_ns"`
	Decode   int           `json:"decode"` // tokens generated
	DecodeT  time.Duration `json:"decode_ns"`
	Read     int64         `json:"read_bytes"` // from the drives
	HitRate  float64       `json:"hit_rate"`   // experts ready in memory when asked for, 0 to 1
}

// An Event is something worth remembering about a thread: paused, detached, a
// drive lost, a model replaced.
type Event struct {
	At   time.Time
	Turn ID // zero when it concerns the thread
	Kind string
	Text string
}

// A Thread is a thread with all its turns, in order of creation: parents come
// before their children.
type Thread struct {
	ThreadInfo
	Branches []Branch
	Turns    []Turn
	Events   []Event
}

// Turn returns the turn of that id, or nil.
func (t *Thread) Turn(id ID) *Turn {
	for i := range t.Turns {
		if t.Turns[i].ID == id {
			return &t.Turns[i]
		}
	}
	return nil
}

// FindBranch returns the branch of that name; "" means the one used last.
func (t *Thread) FindBranch(name string) (Branch, error) {
	if name == "" {
		name = t.Branch
	}
	i := slices.IndexFunc(t.Branches, func(b Branch) bool { return b.Name == name })
	if i < 0 {
		return Branch{}, fmt.Errorf("branch %q of thread %s: %w", name, t.ID.Short(), ErrNotFound)
	}
	return t.Branches[i], nil
}

// Path returns the turns from the first one down to leaf.
func (t *Thread) Path(leaf ID) []Turn {
	byID := make(map[ID]int, len(t.Turns))
	for i := range t.Turns {
		byID[t.Turns[i].ID] = i
	}
	var path []Turn
	for leaf != 0 {
		i, ok := byID[leaf]
		if !ok {
			break
		}
		path = append(path, t.Turns[i])
		delete(byID, leaf) // a damaged file must not make this loop forever
		leaf = t.Turns[i].Parent
	}
	slices.Reverse(path)
	return path
}
