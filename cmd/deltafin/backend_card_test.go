package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"deltafin/engine"
	"deltafin/engine/checkpoint"
	"deltafin/engine/memory"
	"deltafin/engine/sample"
	"deltafin/session"
	answers "deltafin/session/run"
	jobs "deltafin/session/run/work"
	"deltafin/ssdio"
	"deltafin/tui/pane"
	"deltafin/tui/text"
)

// internal are words of the program's inside, which no message to a person has.
var internal = regexp.MustCompile(`(?i)\b(goroutine|mutex|nil|backend|sampler?|snapshot|struct|pointer|panic|errno|EOF|ctx|syscall|0x[0-9a-f]+|journal|sqlite|hedge[ds]?|slots?|arena)\b|deltafin/`)

// checkCard holds a card to the rules of every message: what happened, what is safe
// and what to do, in whole sentences that fit the smallest window.
func checkCard(t *testing.T, what string, c *pane.Card) {
	t.Helper()
	if c == nil {
		t.Errorf("%s: no card", what)
		return
	}
	happened, safe, do := c.Parts()
	for _, part := range []string{happened, safe, do} {
		if part == "" || !strings.HasSuffix(part, ".") || capital(part) != part || strings.Contains(part, "..") && !strings.Contains(part, " ... ") {
			t.Errorf("%s: %q is no sentence", what, part)
		}
	}
	if word := internal.FindString(c.Title + " " + c.Text); word != "" {
		t.Errorf("%s: %q is a word of the inside: %s", what, word, c.Text)
	}
	if len(c.Title) == 0 || text.Width(c.Title) > 38 || strings.HasSuffix(c.Title, ".") {
		t.Errorf("%s: title %q", what, c.Title)
	}
	if n := text.Width(c.Text); n > 420 {
		t.Errorf("%s: %d cells: %s", what, n, c.Text)
	}
	for _, k := range c.Choices {
		if len(k.Key) != 1 || k.Label == "" || k.Do == "" {
			t.Errorf("%s: choice %+v", what, k)
		}
	}
}

func readError(err error) error {
	return &ssdio.ReadError{Key: ssdio.Key{Layer: 44, Expert: 213}, Drive: "nvme2n1", File: "experts-17.pack", Offset: 81604378624, Length: 12_600_000, Tries: 3, Err: err}
}

// TestWhatStopsAnAnswer: each kind of failure has its word in the header and a card
// that says what happened, what is safe and what to do.
func TestWhatStopsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		err        error
		verb, want string // in the header, and in the text
		choices    int
	}{
		{fmt.Errorf("appending: %w", session.ErrFull), "DISK FULL", "Free some space, then press r.", 2},
		{&answers.ModelError{Have: "8f2c91aa77", Loaded: "91aa04c7bb"}, "OTHER MODEL", "made with model 8f2c91aa; loaded is 91aa04c7", 0},
		{answers.ErrOtherTokens, "OTHER MODEL", "another vocabulary", 0},
		{answers.ErrOtherTrunk, "OTHER MODEL", "--trunk", 0},
		{&engine.ContextError{Tokens: 300_000, Limit: 262_144}, "FULL", "300 000 of 262 144", 0},
		{session.ErrLocked, "", "Another program is writing this thread", 2},
		{session.ErrCorrupt, "STOPPED threads", "The thread database is damaged", 2},
		{session.ErrIO, "STOPPED threads", "could not be read or written", 2},
		{sample.ErrNotNumbers, "STOPPED data", "deltafin verify", 2},
		{&engine.MemoryError{Experts: []ssdio.Key{{Layer: 7, Expert: 300}, {Layer: 9, Expert: 2}}, Err: sample.ErrNotNumbers}, "STOPPED memory", "(2 experts, first layer 7 expert 300)", 2},
		{readError(ssdio.ErrChecksum), "STOPPED data", "Experts-17.pack (layer 44 expert 213) on drive nvme2n1 does not hold what it should", 2},
		{readError(ssdio.ErrShort), "STOPPED data", "does not hold", 2},
		{readError(ssdio.ErrGone), "STOPPED nvme2n1", "Plug it in again", 2},
		{readError(ssdio.ErrStalled), "STOPPED nvme2n1", "stopped answering", 2},
		{&ssdio.ReadError{Key: ssdio.Key{Layer: 3, Expert: 1}, Err: ssdio.ErrNoHolder}, "STOPPED drive", "layer 3 expert 1", 2},
		{readError(&fs.PathError{Op: "read", Path: "/mnt/b/experts-17.pack", Err: syscall.EIO}), "STOPPED nvme2n1", "Could not read 13 MB of experts-17.pack (layer 44 expert 213) on drive nvme2n1 (input/output error, tries: 3).", 2},
		{errors.New("something new " + strings.Repeat("and long ", 60) + "with a cause"), "", "with a cause", 2},
	} {
		st := &jobs.State{Phase: jobs.Stopped, Err: c.err, Answer: make([]session.Token, 1204)}
		verb, card := stopCard(st, 262_144)
		if verb != c.verb {
			t.Errorf("%v: %q in the header, want %q", c.err, verb, c.verb)
		}
		checkCard(t, c.err.Error(), card)
		if !strings.Contains(card.Text, c.want) || !card.Grave || len(card.Choices) != c.choices {
			t.Errorf("%v: %+v", c.err, card)
		}
		if c.choices > 0 && !strings.Contains(card.Text, "token 1 204 is saved") {
			t.Errorf("%v does not say what is saved: %s", c.err, card.Text)
		}
	}
}

// TestWhatIsNoFailure: an answer under way, one that was cancelled, and one that came
// to its own end have no card; one that ended at a bound says so.
func TestWhatIsNoFailure(t *testing.T) {
	turn := session.ID(7)
	last := func(stop string) answers.Result { return answers.Result{Turn: turn, Stop: stop, Tokens: 4096} }
	for _, st := range []*jobs.State{
		{Phase: jobs.Decoding, Err: session.ErrFull}, {Phase: jobs.Paused, Err: context.Canceled}, {Phase: jobs.Idle},
		{Phase: jobs.Idle, Answers: 1, Turn: turn, Last: last(answers.StopEnd)}, {Phase: jobs.Idle, Answers: 1, Turn: 8, Last: last(answers.StopContext)},
	} {
		if verb, c := stopCard(st, 100); verb != "" || c != nil || cutShort(st) != "" {
			t.Errorf("%+v: %q, %+v, %q", st, verb, c, cutShort(st))
		}
	}
	st := &jobs.State{Phase: jobs.Idle, Answers: 1, Turn: turn, Last: last(answers.StopContext)}
	verb, c := stopCard(st, 262_144)
	checkCard(t, "a full context", c)
	if verb != "FULL" || c.Grave || !strings.Contains(c.Text, "262 144") || c.Choices[0] != forkBefore {
		t.Errorf("%q, %+v", verb, c)
	}
	st.Last = last(answers.StopLength)
	if line := cutShort(st); !strings.Contains(line, "4 096") || text.Width(line) > 120 {
		t.Error(line)
	}
}

// TestWhyAModelCannotBeOpened: nothing was changed, and there is a way on.
func TestWhyAModelCannotBeOpened(t *testing.T) {
	for want, err := range map[string]error{
		"/models/k3 is not there":  fmt.Errorf("opening: %w", fs.ErrNotExist),
		"Not a checkpoint":         checkpoint.ErrNotCheckpoint,
		"Complete the copy":        fmt.Errorf("model-00017.safetensors: %w", checkpoint.ErrMissingShard),
		"Unsupported model":        checkpoint.ErrUnsupported,
		"smaller --memory":         &memory.Error{Need: 118e9, Have: 102e9},
		"Free some space":          session.ErrFull,
		"Permission denied":        syscall.EACCES,
		"format 9, this program k": &session.SchemaError{Path: "threads.db", Have: 9, Want: 3},
	} {
		c := notOpened("/models/k3", err)
		checkCard(t, err.Error(), c)
		if !strings.Contains(c.Text, want) || !strings.Contains(c.Text, "Nothing was changed.") {
			t.Errorf("%v: %s", err, c.Text)
		}
	}
}

// TestMemoryCard: what the watcher of the memory did, with its figures.
func TestMemoryCard(t *testing.T) {
	for want, n := range map[string]*memory.Notice{
		"Expert cache cut from":     {From: 96e9, To: 84e9, Available: 1.2e9, Others: 9e9},
		"is as small as it can be,": {From: 10e9, To: 10e9, Available: 1.2e9, Short: true},
	} {
		c := memoryCard(n)
		checkCard(t, want, c)
		if !strings.Contains(c.Text, want) || strings.Contains(c.Text, "another program") != (n.Others > 0) {
			t.Error(c.Text)
		}
	}
}
