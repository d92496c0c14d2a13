package expert

// Shares writes to dst which share of each layer's experts is in memory, in parts of
// consecutive experts: [layers with experts][parts], 0 to 1. It reuses dst.
func (s *Store) Shares(dst [][]float64, parts int) [][]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	dst = dst[:0]
	n := s.cat.experts
	parts = max(min(parts, n), 1)
	for _, first := range s.cat.first {
		if first < 0 {
			continue
		}
		row := make([]float64, parts)
		for p := range row {
			from, to := p*n/parts, (p+1)*n/parts
			held := 0
			for key := first + from; key < first+to; key++ {
				if at := s.where[key]; at >= 0 && s.held[at].batch == nil {
					held++
				}
			}
			row[p] = float64(held) / float64(to-from)
		}
		dst = append(dst, row)
	}
	return dst
}
