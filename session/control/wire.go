package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"deltafin/session"
)

// Version is the version of the protocol.
const Version = 1

// MaxLine is the longest message in bytes, its line feed included. A question may
// carry a document; more than this belongs into a file.
const MaxLine = 4 << 20

// A Verb is what a request asks for.
type Verb string

// The verbs.
const (
	GetStatus Verb = "status"    // answered with Status
	Pause     Verb = "pause"     // after the token or the pass in hand
	Resume    Verb = "resume"    // the paused answer, else the queue
	Ask       Verb = "ask"       // Text in Thread (zero: a new one): now, or queued if an answer is under way
	Enqueue   Verb = "enqueue"   // Text in Thread: at the end of the queue
	BreakIn   Verb = "break-in"  // ends the answer under way and asks Text in its thread
	Subscribe Verb = "subscribe" // from now on a status event on every change, at most one per Every
	TakeOver  Verb = "take-over" // the screen that drives is asked to let go; Text says who asks
	Stop      Verb = "stop"      // pause, save and end the process
)

// known are the verbs with what they need.
var known = map[Verb]struct{ text bool }{
	GetStatus: {}, Pause: {}, Resume: {}, Ask: {true}, Enqueue: {true}, BreakIn: {true}, Subscribe: {}, TakeOver: {}, Stop: {},
}

// A Hello is the first line of the server.
type Hello struct {
	Protocol int           `json:"deltafin_control"`
	Owner    session.Owner `json:"owner"`
}

// A Request is a line of the client.
type Request struct {
	ID     uint64     `json:"id"` // of the client's choice; the answer bears it
	Do     Verb       `json:"do"`
	Text   string     `json:"text,omitempty"`
	Thread session.ID `json:"thread,omitzero"`
	Every  float64    `json:"every_s,omitempty"` // of Subscribe: seconds, see MinEvery
}

// MinEvery is the least time between two events of a subscription.
const MinEvery = 50 * time.Millisecond

// An answer is a line of the server after the first: the answer to a request, or
// an event.
type answer struct {
	ID     uint64  `json:"id,omitempty"`
	Error  string  `json:"error,omitempty"`
	Event  string  `json:"event,omitempty"` // "status" or "bye"
	Status *Status `json:"status,omitempty"`
}

// A Status says what the owner is doing. Times without anything to measure are
// zero.
type Status struct {
	Change   uint64     `json:"change"`           // grows whenever something below has changed
	State    string     `json:"state"`            // idle, loading, prefill, thinking, decoding, pausing, paused, stopped
	Screen   string     `json:"screen,omitempty"` // the terminal that drives; "" when detached
	Model    string     `json:"model,omitempty"`
	Thread   session.ID `json:"thread,omitzero"`
	Turn     session.ID `json:"turn,omitzero"`
	Branch   string     `json:"branch,omitempty"`
	Title    string     `json:"title,omitempty"`
	Tokens   int        `json:"tokens"`              // of the answer, all in the journal
	Prompt   int        `json:"prompt,omitempty"`    // tokens to read
	Read     float64    `json:"read,omitempty"`      // share of the prompt, 0 to 1
	Layer    int        `json:"layer,omitempty"`     // of the token or pass in hand
	Layers   int        `json:"layers,omitempty"`    //
	Rate     float64    `json:"tokens_per_s"`        // over the last tokens
	Elapsed  float64    `json:"elapsed_s,omitempty"` // since the answer was begun
	Left     float64    `json:"left_s,omitempty"`    // of the prompt
	Queue    int        `json:"queue"`               // questions that wait
	HitRate  float64    `json:"hit_rate,omitempty"`  // of experts since the start
	DriveNow float64    `json:"drives_bytes_per_s,omitempty"`
	Notice   string     `json:"notice,omitempty"` // the last thing a person should know
	Error    string     `json:"error,omitempty"`  // what stopped the last answer

	// Sample is the live figures in the form of the screens: only in events.
	Sample json.RawMessage `json:"sample,omitempty"`
}

// ErrProtocol: a line that is no message. The connection ends.
var ErrProtocol = errors.New("control: not a message of the protocol")

// parseRequest reads one line.
func parseRequest(line []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	need, ok := known[r.Do]
	switch {
	case !ok:
		return r, fmt.Errorf("control: request %d asks for %q, which this version (%d) does not know", r.ID, r.Do, Version)
	case need.text && len(bytes.TrimSpace([]byte(r.Text))) == 0:
		return r, fmt.Errorf("control: request %d: %s needs a text", r.ID, r.Do)
	case r.Every < 0 || r.Every > 3600:
		return r, fmt.Errorf("control: request %d: an event every %v s: give 0 to 3600", r.ID, r.Every)
	}
	return r, nil
}

// encode makes one line.
func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(line) >= MaxLine {
		return nil, fmt.Errorf("control: a message of %d bytes, the most is %d: put long text into a file", len(line)+1, MaxLine)
	}
	return append(line, '\n'), nil
}

// A lineReader reads lines of at most MaxLine bytes; what is longer is an error
// before it is kept.
type lineReader struct{ s *bufio.Scanner }

func newLineReader(r io.Reader) *lineReader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), MaxLine)
	return &lineReader{s}
}

// next returns a line that is valid until the next call; io.EOF at the end.
func (l *lineReader) next() ([]byte, error) {
	if l.s.Scan() {
		return l.s.Bytes(), nil
	}
	switch err := l.s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, MaxLine)
	case err != nil:
		return nil, err
	}
	return nil, io.EOF
}
