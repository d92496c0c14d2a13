package run

import (
	"errors"
	"fmt"
	"time"

	"deltafin/session"
)

// Errors a caller decides on; test with errors.Is and errors.As. Those of
// session and engine come through as they are.
var (
	// ErrNothing: the branch has nothing to go on with: it is empty, or its last
	// answer ended by itself.
	ErrNothing = errors.New("nothing to go on with")
	// ErrOtherTokens: an answer in the middle was begun with a vocabulary that
	// the loaded model does not have.
	ErrOtherTokens = errors.New("the answer was begun with another vocabulary")
	// ErrOtherTrunk: an answer in the middle was begun with the exact model, and
	// loaded is one with an int8 trunk, or the other way round.
	ErrOtherTrunk = errors.New("the answer was begun with another form of the model")
)

// A ModelError is a thread that was made with other weights than those loaded.
// Request.OtherModel goes on all the same, reading everything again.
type ModelError struct {
	Thread       session.ID
	Model        string        // name of the thread's model
	Have, Loaded string        // fingerprints: of the thread, and of the engine
	Tokens       int           // to be read again
	Reading      time.Duration // how long that is likely to take; 0 when nothing was measured
}

// Error says what is possible all the same.
func (e *ModelError) Error() string {
	took := ""
	if e.Reading > 0 {
		took = fmt.Sprintf(" (about %s)", round(e.Reading))
	}
	return fmt.Sprintf("thread %s was made with model fingerprint %s, loaded is %s: it can be read and exported; to go on, its %d tokens will be read again from the start%s",
		e.Thread.Short(), abbreviate(e.Have), abbreviate(e.Loaded), e.Tokens, took)
}

func abbreviate(fingerprint string) string {
	if len(fingerprint) > 8 {
		return fingerprint[:8] + "…"
	}
	return fingerprint
}

// round gives a duration to two digits or so: it is an estimate.
func round(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return d.Round(time.Second)
	case d < time.Hour:
		return d.Round(10 * time.Second)
	}
	return d.Round(time.Minute)
}
