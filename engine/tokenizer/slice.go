package tokenizer

// The safety rule of the original tokenizer (spec 5.2): texts are cut every
// maxSlice characters, and inside a slice any longer run of only spaces or only
// other characters is cut every maxRun characters.
const (
	maxSlice = 400_000
	maxRun   = 25_000
)

// A slicer walks over the slices of one text. Cuts fall between characters.
type slicer struct {
	classes *classes
	text    string
	left    int // characters until the next cut by maxSlice
}

func (t *Tokenizer) slicer(text string) slicer {
	return slicer{classes: t.classes, text: text, left: maxSlice}
}

func (s *slicer) done() bool { return s.text == "" }

// next returns the next slice; it must not be called when done.
func (s *slicer) next() string {
	if len(s.text) <= min(maxRun, s.left) {
		// Fewer bytes than characters allowed: no cut is possible.
		return s.take(len(s.text))
	}
	run, kind := 0, uint8(0)
	for i := 0; i < len(s.text); {
		if s.left == 0 {
			s.left = maxSlice
			return s.take(i)
		}
		bits, n := s.classes.at(s.text, i)
		if bits&pySpace != kind {
			kind, run = bits&pySpace, 0
		}
		if run++; run > maxRun {
			// This character opens the next slice, where it is counted.
			return s.take(i)
		}
		s.left--
		i += n
	}
	return s.take(len(s.text))
}

func (s *slicer) take(n int) string {
	head := s.text[:n]
	s.text = s.text[n:]
	return head
}
