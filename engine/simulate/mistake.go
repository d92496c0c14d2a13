package simulate

// A Mistake is a way in which a simulated engine differs from the real one on purpose:
// what compares the two has to notice.
type Mistake int

// The mistakes.
const (
	NoMistake Mistake = iota
	Forgetful         // the cache knows the last token only
	Misguided         // what is read ahead is for another layer
	Unspread          // every read goes to the first drive
)

// halfLife is that of the cache policy, 0: the engine's.
func (m Mistake) halfLife() float64 {
	if m == Forgetful {
		return 0.1
	}
	return 0
}
