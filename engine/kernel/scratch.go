package kernel

// Scratch is the working memory of one worker. Its buffers grow to the largest
// size asked for and are then reused, so that a warm kernel allocates nothing.
// A Scratch belongs to one goroutine at a time; the zero value is ready.
type Scratch struct {
	f []float32
	d []float64
}

// floats returns n floats on a cache line with any content, valid until the next call.
func (s *Scratch) floats(n int) []float32 {
	if cap(s.f) < n {
		s.f = Floats(n)
	}
	return s.f[:n]
}

// doubles returns n float64 with any content, valid until the next call.
func (s *Scratch) doubles(n int) []float64 {
	if cap(s.d) < n {
		s.d = make([]float64, n)
	}
	return s.d[:n]
}
