package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

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

// The ways on from what stopped an answer.
var (
	tryAgain    = pane.Choice{Key: "r", Label: "try again", Do: "retry"}
	keepIt      = pane.Choice{Key: "q", Label: "keep it for later", Do: "later"}
	forkBefore  = pane.Choice{Key: "f", Label: "fork before the question", Do: "fork"}
	setupWayOut = "Give another folder, or press Enter for the demonstration model."
)

// stopCard says what stopped an answer, or ended it before its time: what the header
// says instead of the state's word, and the card. Both are empty if nothing did.
func stopCard(st *jobs.State, limit int) (verb string, c *pane.Card) {
	switch {
	case st.Phase.Busy():
		return "", nil
	case st.Err == nil:
		return ended(st, limit)
	case errors.Is(st.Err, context.Canceled):
		return "", nil
	}
	safe := fmt.Sprintf("Your text up to token %s is saved.", pane.Count(int64(len(st.Answer))))
	if len(st.Answer) == 0 {
		safe = "Nothing that was shown is lost."
	}
	verb, c = failure(st.Err, safe)
	c.Grave = true
	return verb, c
}

// failure is the card of an error; safe says what is kept.
func failure(err error, safe string) (verb string, c *pane.Card) {
	var model *answers.ModelError
	var long *engine.ContextError
	var memory *engine.MemoryError
	switch {
	case errors.Is(err, session.ErrFull):
		return "DISK FULL", pane.NewCard("The disk with your sessions is full", "The disk with your sessions is full, so the answer is paused.", safe, "Free some space, then press r.", tryAgain, keepIt)
	case errors.As(err, &model):
		return "OTHER MODEL", pane.NewCard("Another model is loaded",
			fmt.Sprintf("This thread was made with model %.8s; loaded is %.8s.", model.Have, model.Loaded), "You can read and export it.", "Ask in a new thread (ctrl+x n), or start with --other-model to go on.")
	case errors.Is(err, answers.ErrOtherTrunk):
		return "OTHER MODEL", pane.NewCard("Another form of the model is loaded", "This answer was begun with another form of the weights that every token uses.", safe,
			"Start with the --trunk it was begun with, or make another answer.")
	case errors.Is(err, answers.ErrOtherTokens):
		return "OTHER MODEL", pane.NewCard("Another model is loaded", "This answer was begun with another vocabulary.", safe, "Open the model it was begun with, or ask in a new thread (ctrl+x n).")
	case errors.As(err, &long):
		return "FULL", pane.NewCard("The question is too long", fmt.Sprintf("With it the thread has %s of %s tokens.", pane.Count(int64(long.Tokens)), pane.Count(int64(long.Limit))),
			"Nothing was lost.", "Ask with fewer or shorter files, or in a new thread (ctrl+x n).")
	case errors.Is(err, session.ErrLocked):
		return "", pane.NewCard("The thread is in use", "Another program is writing this thread.", safe, "Let it end, then press r.", tryAgain, keepIt)
	case errors.Is(err, session.ErrCorrupt), errors.Is(err, session.ErrIO), errors.Is(err, session.ErrBusy):
		return "STOPPED threads", pane.NewCard("The threads cannot be written", sentence(err), safe, "Look at the disk with them (deltafin paths), then press r.", tryAgain, keepIt)
	case errors.As(err, &memory):
		return "STOPPED memory", pane.NewCard("The memory of this machine changed",
			"Weights in memory are not what was read and checked any more ("+memory.What()+"). They are read again.",
			safe+" What was written last may be wrong.", "Press r to go on. If it happens again, test this machine's memory.", tryAgain, keepIt)
	case errors.Is(err, sample.ErrNotNumbers):
		return "STOPPED data", pane.NewCard("The weights may be damaged", "The model gave no number for the next token.", safe, "Run deltafin verify, then press r.", tryAgain, keepIt)
	}
	if verb, c := driveFailure(err, safe); c != nil {
		return verb, c
	}
	return "", pane.NewCard("The answer stopped", sentence(err), safe, "Press r to go on, or q to leave; the answer can go on later.", tryAgain, keepIt)
}

// driveFailure is the card of a read that no drive could serve, nil for other errors.
func driveFailure(err error, safe string) (verb string, c *pane.Card) {
	var read *ssdio.ReadError
	if !errors.As(err, &read) {
		return "", nil
	}
	where := read.Key.String()
	what, on := "Weights of "+where, ""
	if read.File != "" {
		what = read.File + " (" + where + ")"
	}
	if read.Drive != "" {
		on = " on drive " + read.Drive
	}
	switch {
	case errors.Is(err, ssdio.ErrChecksum), errors.Is(err, ssdio.ErrShort):
		return "STOPPED data", pane.NewCard("The weights do not match", capital(what)+on+" does not hold what it should.", "It was not used. "+safe, "Run deltafin verify, then press r.", tryAgain, keepIt)
	case errors.Is(err, ssdio.ErrGone), errors.Is(err, ssdio.ErrDriveLost), errors.Is(err, ssdio.ErrStalled), errors.Is(err, ssdio.ErrNoHolder):
		name := read.Drive
		if name == "" {
			return "STOPPED drive", pane.NewCard("A drive stopped", "The drive that holds "+where+" does not answer.", safe, "Plug it in again and press r; the answer can also go on later.", tryAgain, keepIt)
		}
		return "STOPPED " + name, pane.NewCard("Drive "+name+" stopped", "Drive "+name+" stopped answering.", safe, "Plug it in again and press r; the answer can also go on later.", tryAgain, keepIt)
	}
	size := humanize.Bytes(uint64(max(read.Length, 0)))
	return "STOPPED " + read.Drive, pane.NewCard("A read failed", fmt.Sprintf("Could not read %s of %s%s (%s, tries: %d).", size, what, on, reason(read.Err), read.Tries), safe,
		"The drive may be failing: run deltafin verify, then press r.", tryAgain, keepIt)
}

// reason is the system's word for an error, without the calls it went through.
func reason(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return text.Elide(oneLine(err.Error()), 60, "...")
}

// ended says why an answer ended before its own end.
func ended(st *jobs.State, limit int) (verb string, c *pane.Card) {
	if st.Phase != jobs.Idle || st.Answers == 0 || st.Last.Turn != st.Turn || st.Last.Stop != answers.StopContext {
		return "", nil
	}
	return "FULL", pane.NewCard("The context is full", fmt.Sprintf("The thread has used all %s tokens of the context, so the answer ended here.", pane.Count(int64(limit))),
		"All of it is saved.", "Press f to fork before this question, or ctrl+x n for a new thread.", forkBefore)
}

// cutShort is a line about an answer that reached the bound on its length.
func cutShort(st *jobs.State) string {
	if st.Phase != jobs.Idle || st.Last.Turn != st.Turn || st.Last.Stop != answers.StopLength {
		return ""
	}
	return fmt.Sprintf("The answer ended at its bound of %s tokens and is saved. Ask it to go on if you want more.", pane.Count(int64(st.Last.Tokens)))
}

// notOpened says why a model could not be opened.
func notOpened(folder string, err error) *pane.Card {
	if folder == "" {
		folder = "The folder"
	}
	const safe = "Nothing was changed."
	var short *memory.Error
	switch {
	case errors.As(err, &short):
		return pane.NewCard("Not enough memory", sentence(short), safe, "Leave and start with a smaller --memory or --cache, or press Enter for the demonstration model.")
	case errors.As(err, new(*engine.NoInt8Error)):
		return pane.NewCard("The model was not converted", "With --trunk int8 a model runs from a file that has to be made first.", safe,
			"Leave and run deltafin trunk convert, or start without --trunk.")
	case errors.Is(err, checkpoint.ErrMissingShard):
		return pane.NewCard("The model is not complete", sentence(err), safe, "Complete the copy and give the folder again, or press Enter for the demonstration model.")
	case errors.Is(err, checkpoint.ErrUnsupported):
		return pane.NewCard("This model does not run here", sentence(err), safe, setupWayOut)
	case errors.Is(err, checkpoint.ErrNotCheckpoint):
		return pane.NewCard("The model could not be opened", sentence(err), safe, setupWayOut)
	case errors.Is(err, fs.ErrNotExist):
		return pane.NewCard("There is no model", text.CutMiddle(folder, 70, "...")+" is not there.", safe, setupWayOut)
	case errors.Is(err, session.ErrFull):
		return pane.NewCard("The disk with your sessions is full", "The disk with your sessions is full.", safe, "Free some space, then give the model again.")
	}
	return pane.NewCard("The model could not be opened", sentence(err), safe, setupWayOut)
}

// maxCause is the most of an error's text that a card shows, in cells. The beginning
// names the thing and the end the cause, so the middle goes; the thread keeps all of
// it.
const maxCause = 160

// sentence makes an error's text one.
func sentence(err error) string {
	return capital(text.CutMiddle(oneLine(err.Error()), maxCause, " ... ")) + "."
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// memoryCard says that the cache of experts had to give memory back.
func memoryCard(n *memory.Notice) *pane.Card {
	took := ""
	if n.Others > 0 {
		took = " (another program took " + memory.Text(n.Others) + ")"
	}
	cut := "Expert cache cut from " + memory.Text(n.From) + " to " + memory.Text(n.To) + "."
	if n.Short {
		cut = "The expert cache is as small as it can be, " + memory.Text(n.To) + "."
	}
	return pane.NewCard("Memory is short", "Only "+memory.Text(n.Available)+" RAM left"+took+". "+cut, "Answers go on, slower.", "Close other programs: the cache grows again by itself.")
}
