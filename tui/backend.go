package tui

import (
	"context"
	"time"

	"deltafin/session"
	"deltafin/tui/pane"
)

// A Sample is everything the screen shows of the work at one moment.
type Sample = pane.Sample

// A Question is what the user asks.
type Question struct {
	Thread session.ID // zero: a new thread
	Branch string     // "" is the one used last
	Text   string     // as typed, without the attached files' text
	Files  []Attachment
}

// An Attachment is a file, a folder or a glob pattern, or lines of one file, that
// goes with a question.
type Attachment struct {
	Path     string // as the user wrote it, resolved against the working folder
	From, To int    // lines counted from 1, both included; 0 and 0 for all
}

// A Cost is what a question will take before it is sent.
type Cost struct {
	Tokens int              // of text and files
	Time   session.Estimate // until the answer is complete; zero Likely if not known
	First  time.Duration    // until its first word
}

// A Backend is what the screen watches and steers: the engine in this process, or
// one in another, behind a socket. Its methods may be called from any goroutine.
//
// Snapshot is called on the screen's tick and must neither wait nor allocate
// much: it copies a value that was published. All other methods are called off the
// screen's loop and may wait for the disk. They return when the wish was taken
// down, not when it has been fulfilled: that shows in a Sample. The work never
// waits for the screen.
//
// An error is shown to the user as it is, so it says what happened, what is safe
// and what to do.
type Backend interface {
	// Snapshot fills in the newest state. dst.Change grows with each one.
	Snapshot(dst *Sample)
	// Changed is closed when a state newer than those published before the call is
	// there. The screen waits for it when nothing runs, so that it need not look.
	Changed() <-chan struct{}

	// Ask answers a question now, or queues it while another is answered.
	Ask(ctx context.Context, q Question) error
	// BreakIn ends the answer under way after the token in hand and asks q.
	BreakIn(ctx context.Context, q Question) error
	// Pause stops after the token in hand.
	Pause(ctx context.Context) error
	// Resume goes on with what was paused or stopped, or lets the queue begin.
	Resume(ctx context.Context) error
	// Choose does what a Choice of the Sample's Card stands for. One that is a slash
	// and the name of a command, such as "/quit", the screen does itself.
	Choose(ctx context.Context, do string) error
	// Open opens a model: a folder, or DemoModel for the one inside the program.
	Open(ctx context.Context, folder string) error

	// Move moves a queued question by places, negative towards the front.
	Move(ctx context.Context, item session.ID, places int) error
	// Remove takes a question out of the queue.
	Remove(ctx context.Context, item session.ID) error

	// Threads lists threads whose title contains a text, the newest first.
	Threads(ctx context.Context, title string) ([]session.ThreadInfo, error)
	// Thread loads a thread with the bodies of its turns.
	Thread(ctx context.Context, id session.ID) (*session.Thread, error)
	// Search finds words in titles and texts.
	Search(ctx context.Context, query string) ([]session.Hit, error)

	// Rename gives a thread a title.
	Rename(ctx context.Context, thread session.ID, title string) error
	// Fork makes a branch that ends at a turn, makes it the one in use, and returns
	// its name.
	Fork(ctx context.Context, thread, turn session.ID) (string, error)
	// Regenerate answers the question of an answer once more, on a new branch, with
	// another seed.
	Regenerate(ctx context.Context, thread, turn session.ID) error
	// Undo moves a branch's leaf up by one question; Redo moves it down again.
	Undo(ctx context.Context, thread session.ID, branch string) error
	Redo(ctx context.Context, thread session.ID, branch string) error

	// Estimate says what a question will cost.
	Estimate(ctx context.Context, q Question) (Cost, error)
	// Export writes a thread to a file, in the form its ending names: md, json, html
	// or txt.
	Export(ctx context.Context, thread session.ID, path string) error
}

// DemoModel is the folder that stands for the demonstration model.
const DemoModel = "demo"
