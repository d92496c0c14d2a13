package tokenizer

// shortPiece is the longest piece, in bytes, that is merged by plain search in
// arrays on the stack. Words and numbers are far below it; what lies above are
// long runs of one script, where a heap keeps the time near linear.
const shortPiece = 96

// appendPiece appends the tokens of one piece (spec 5.3). A piece that is a
// token as a whole is that token. Any other starts as single bytes; again and
// again the adjacent pair whose joined bytes have the lowest rank becomes one
// part, the leftmost of equals first, until no pair has a rank.
//
// The parts are always tokens, so the rank of a pair is that of the bytes from
// the start of its first part to the end of its second.
func (t *lookup) appendPiece(dst []int, piece string) []int {
	if rank := t.find(piece); rank != none {
		return append(dst, int(rank))
	}
	if len(piece) <= shortPiece {
		return t.mergeShort(dst, piece)
	}
	return t.mergeLong(dst, piece)
}

// mergeShort searches all pairs for each merge. For a few dozen parts that
// stay in the first cache this beats any structure.
func (t *lookup) mergeShort(dst []int, piece string) []int {
	var (
		start [shortPiece + 1]uint8  // where part i begins; one more for the end
		id    [shortPiece]uint32     // rank of part i
		rank  [shortPiece + 1]uint32 // rank of parts i and i+1 joined, or none
	)
	n := len(piece)
	for i := range n {
		start[i] = uint8(i)
		id[i] = t.single[piece[i]]
		if i+1 < n {
			rank[i] = t.double[pair(piece[i], piece[i+1])]
		}
	}
	start[n] = uint8(n)
	for {
		rank[n-1] = none // the last part has no right neighbour
		best, at := none, 0
		for i, r := range rank[:n] {
			if r < best {
				best, at = r, i
			}
		}
		if best == none {
			break
		}
		id[at] = best
		copy(start[at+1:n], start[at+2:n+1])
		copy(id[at+1:n-1], id[at+2:n])
		copy(rank[at+1:n-1], rank[at+2:n])
		n--
		if at+1 < n {
			rank[at] = t.find(piece[start[at]:start[at+2]])
		}
		if at > 0 {
			rank[at-1] = t.find(piece[start[at-1]:start[at+1]])
		}
	}
	for _, r := range id[:n] {
		dst = append(dst, int(r))
	}
	return dst
}

// A part is one link of the chain that mergeLong works on. A part stands at the
// index of its first byte.
type part struct {
	prev, next int32  // neighbours; next is also where the part's bytes end
	id         uint32 // rank of the part
	rank       uint32 // rank of this and the next part joined, or none
}

// mergeLong keeps the pairs in a heap ordered by rank, then position. A merge
// leaves old entries of its neighbours behind; an entry counts only if it still
// says what its part says. O(n log n) for n bytes.
func (t *lookup) mergeLong(dst []int, piece string) []int {
	n := int32(len(piece))
	parts := make([]part, n)
	queue := make(pairHeap, 0, n)
	for i := range n {
		p := part{prev: i - 1, next: i + 1, id: t.single[piece[i]], rank: none}
		if i+1 < n {
			p.rank = t.double[pair(piece[i], piece[i+1])]
			if p.rank != none {
				queue = append(queue, entry(p.rank, i))
			}
		}
		parts[i] = p
	}
	queue.init()
	// renew asks anew for the pair that begins at part i.
	renew := func(i int32) {
		p := &parts[i]
		p.rank = none
		if p.next < n {
			if p.rank = t.find(piece[i:parts[p.next].next]); p.rank != none {
				queue.push(entry(p.rank, i))
			}
		}
	}
	for len(queue) > 0 {
		rank, i := queue.pop()
		p := &parts[i]
		if p.rank != rank {
			continue
		}
		gone := &parts[p.next]
		gone.rank = none
		p.id, p.next = rank, gone.next
		if p.next < n {
			parts[p.next].prev = i
		}
		renew(i)
		if p.prev >= 0 {
			renew(p.prev)
		}
	}
	for i := int32(0); i < n; i = parts[i].next {
		dst = append(dst, int(parts[i].id))
	}
	return dst
}
