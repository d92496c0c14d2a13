package tuitest

import (
	"time"

	"deltafin/tui"
	"deltafin/tui/pane"
)

// Names lists the states New knows.
func Names() []string {
	return []string{"setup", "missing", "loading", "empty", "idle", "full", "restoring", "prefill", "thinking", "decoding", "saving",
		"pausing", "paused", "recovered", "diskfull", "stopped", "lost", "spoiled", "changed",
		"lowmemory", "slow", "surviving", "mended", "readonly"}
}

var (
	retry = pane.Choice{Key: "r", Label: "try again", Do: "retry"}
	later = pane.Choice{Key: "q", Label: "keep it for later", Do: "later"}
)

// special makes a sample one of the states that are no pane.State of their own.
func special(s *tui.Sample, state string) {
	work := func(mark string, bad bool, c *pane.Card) {
		s.State, s.Marks, s.Card = pane.Decoding, []pane.Mark{{Text: mark, Bad: bad}}, c
	}
	stop := func(verb string, c *pane.Card) {
		s.State, s.Verb, s.Card = pane.Stopped, verb, c
		s.Card.Grave = true
	}
	switch state {
	case "missing":
		s.Card = pane.NewCard("The model could not be opened", "/models/k3 holds no config.json: it is no model's folder.", "Nothing was changed.", "Give another folder, or press Enter for the demonstration model.")
	case "full":
		s.State, s.Verb = pane.Idle, "FULL"
		s.Card = pane.NewCard("The context is full", "The thread has 262 144 of 262 144 tokens, so the answer ended here.", "All of it is saved.", "Press f to fork before this question, or ctrl+x n for a new thread.",
			pane.Choice{Key: "f", Label: "fork before the question", Do: "fork"})
	case "pausing":
		s.State, s.Pausing = pane.Decoding, true
	case "recovered":
		s.State, s.Verb, s.Notice = pane.Paused, "RECOVERED", "The last run ended in the middle of this answer. It is kept up to token 812. Enter goes on from there."
	case "diskfull":
		s.State, s.Verb = pane.Paused, "DISK FULL"
		s.Card = pane.NewCard("The disk with your sessions is full", "The disk with your sessions is full.", "The answer is paused at token 1 204; nothing is lost.", "Free some space, then press r.", retry, later)
		s.Card.Grave = true
	case "lost":
		stop("STOPPED d3", pane.NewCard("Drive d3 stopped", "Drive d3 stopped answering at 14:22:07.", "Your text up to token 1 204 is saved.", "Plug it in again and press r, or press q to leave; the answer can go on later.", retry, later))
	case "spoiled":
		stop("STOPPED data", pane.NewCard("The weights do not match", "experts-17.bin on drive d1 does not hold what it should at layer 44, expert 213.", "It was not used; your text up to token 1 204 is saved.", "Run deltafin verify, then press r.", retry, later))
	case "changed":
		stop("OTHER MODEL", pane.NewCard("Another model is loaded", "This thread was made with model 8f2c91aa; loaded is 91aa04c7.", "You can read and export it.", "Ask in a new thread (ctrl+x n), or start with --other-model to go on."))
	case "lowmemory":
		work("LOW MEMORY", false, pane.NewCard("Memory is short", "Only 1.2 GB RAM left (another program took 9.0 GB). Expert cache cut from 96 GB to 84 GB.", "The answer goes on, slower.", "Close other programs: the cache grows again by itself."))
	case "slow":
		work("SLOW d4", false, pane.NewCard("Drive d4 is slow", "Drive d4 gives 2.1 GB/s since 14:20; before, it gave 6.7 GB/s.", "Nothing is lost, but answers take longer.", "Better cooling or a pause may help."))
	case "surviving":
		work("LOST d3", true, pane.NewCard("Drive d3 is lost", "Drive d3 stopped answering at 14:22:07.", "The other drives have taken over; the text stays the same.", "Plug it in again: it is taken back by itself."))
	case "mended":
		work("MENDED 12", false, pane.NewCard("Reads were mended", "12 reads of drive d2 failed or did not match their checksums.", "All were read again and checked; the text is right.", "If it goes on, run deltafin verify: the drive may be failing."))
	case "readonly":
		s.State, s.ReadOnly = pane.Decoding, true
	}
}

// wounds changes the drives' figures to those of a state.
func wounds(s *tui.Sample, state string) {
	switch state {
	case "lost", "surviving":
		s.Drives[2].Lost = true
	case "mended":
		s.Drives[1].Errors, s.Drives[1].Retries = 12, 12
	case "slow":
		d := &s.Drives[3]
		d.Now, d.P99, d.Temperature = 2.1e9, 9*time.Millisecond, 81
		for i := range d.History {
			if i > 200 {
				d.History[i] = 2.1e9
			}
		}
	case "lowmemory":
		s.Experts.Budget, s.Memory.Used, s.Memory.Others = 84e9, 108e9, 19e9
	}
}
