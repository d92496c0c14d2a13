package tokenizer

// pairHeap is a binary heap of pairs, lowest rank first and leftmost first
// among equals: both packed into one number, so that comparing is one compare.
type pairHeap []uint64

func entry(rank uint32, at int32) uint64 { return uint64(rank)<<32 | uint64(uint32(at)) }

// init orders arbitrary content.
func (h pairHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *pairHeap) push(e uint64) {
	s := append(*h, e)
	*h = s
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] <= e {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
}

// pop removes the first entry of a heap that is not empty.
func (h *pairHeap) pop() (rank uint32, at int32) {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	*h = s[:last]
	h.down(0)
	return uint32(top >> 32), int32(uint32(top))
}

func (h pairHeap) down(i int) {
	if i >= len(h) {
		return
	}
	e := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if e <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}
