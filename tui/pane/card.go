package pane

import "strings"

// A Card is a box of what the user should know or decide. Its text says what
// happened, what is safe and what to do; NewCard sees to that.
type Card struct {
	Title   string // one line, "Drive 3 stopped"
	Text    string // sentences, each complete
	Choices []Choice
	Grave   bool // the work stands still until the user acts
	parts   [3]string
}

// A Choice is a way on from a Card.
type Choice struct {
	Key   string // one letter the user presses
	Label string // "try again"
	// Do is what the backend is asked to do: see tui.Backend.Choose. It is opaque to
	// the screen.
	Do string
}

// NewCard makes a card of the three parts every message has: what happened, what is
// safe, and what to do, each of whole sentences.
func NewCard(title, happened, safe, do string, choices ...Choice) *Card {
	parts := [3]string{happened, safe, do}
	return &Card{Title: title, Text: strings.Join(parts[:], " "), Choices: choices, parts: parts}
}

// Parts returns what happened, what is safe and what to do, empty for a card that
// NewCard did not make.
func (c *Card) Parts() (happened, safe, do string) { return c.parts[0], c.parts[1], c.parts[2] }

// A Mark is a word or two in the header beside the state, such as LOW MEMORY: a
// condition that lasts while the work goes on.
type Mark struct {
	Text string
	Bad  bool // something is broken, not only slower
	// Short is what stays of it behind another mark where there is no room for both;
	// without it, it is only counted.
	Short string
}
