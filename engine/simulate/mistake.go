package simulate

// A Mistake is a way in which a simulated engine differs from the real one on purpose:
// what compares the two has to notice.
type Mistake int

// The mistakes.
const (
	NoMistake Mistake = iota
	Uncached          // nothing stays longer than the layer that uses it
	Unspread          // every read goes to the first drive
)
