package lookup

// Least and Most bound the length of a match. A single token is no reason to expect
// anything. A long match says that the text is being copied, and where from; how long
// it is beyond that says little more.
const (
	Least = 2
	Most  = 32
)

// places is how many earlier places are looked at, the latest first. Pairs of common
// tokens have thousands.
const places = 64

// firstRoom is how many tokens there is room for at first.
const firstRoom = 256

// An Index knows where pairs of tokens stood in a text. Its zero value is not usable;
// see New. It serves one goroutine.
type Index struct {
	limit int // tokens it may know, a power of two
	n     int // tokens of the text so far

	// Rings with room for the same power of two of tokens: what belongs to position p
	// is at p modulo that. The table has the same size.
	ids  []int32
	prev []int // the place before that where a pair with this hash ended, -1: none
	last []int // [hash]: the last such place
}

// New returns an index that knows the latest limit tokens of its text, rounded up to
// a power of two.
func New(limit int) *Index {
	x := &Index{limit: firstRoom}
	for x.limit < limit {
		x.limit *= 2
	}
	x.room(firstRoom)
	return x
}

// room makes the rings of a size and forgets the text.
func (x *Index) room(size int) {
	x.n = 0
	x.ids, x.prev, x.last = make([]int32, size), make([]int, size), make([]int, size)
	for i := range x.last {
		x.last[i] = -1
	}
}

// Len is how many tokens were added.
func (x *Index) Len() int { return x.n }

// Add appends to the text.
func (x *Index) Add(ids ...int) {
	for _, id := range ids {
		if x.n == len(x.ids) && x.n < x.limit {
			old := x.ids
			x.room(2 * len(old))
			for _, id := range old { // it has not wrapped around yet
				x.add(id)
			}
		}
		x.add(int32(id))
	}
}

func (x *Index) add(id int32) {
	mask := len(x.ids) - 1
	at := x.n & mask
	x.ids[at], x.prev[at] = id, -1
	if x.n++; x.n < Least {
		return
	}
	h := x.hash(x.n - 1)
	x.prev[at] = x.last[h]
	x.last[h] = x.n - 1
}

// id is the token at a position that is known.
func (x *Index) id(p int) int32 { return x.ids[p&(len(x.ids)-1)] }

// known is the first position that has not been overwritten.
func (x *Index) known() int { return max(x.n-len(x.ids), 0) }

// hash is that of the pair that ends at p.
func (x *Index) hash(p int) int {
	h := uint64(uint32(x.id(p-1)))<<32 | uint64(uint32(x.id(p)))
	h *= 0x9E3779B97F4A7C15 // the golden ratio: high bits depend on all of them
	return int(h>>33) & (len(x.last) - 1)
}

// Propose appends up to n tokens to dst: what followed the longest match of the end
// of the text. match is its length, Least to Most; 0 if there is none, and then
// nothing is appended. A match that reaches to the end of the text goes on in what is
// proposed, so that a period is repeated for as long as is asked.
func (x *Index) Propose(dst []int, n int) (_ []int, match int) {
	if x.n < Least || n <= 0 {
		return dst, 0
	}
	from := -1
	low := x.known()
	p := x.prev[(x.n-1)&(len(x.ids)-1)]
	for range places {
		if p-1 < low { // the pair itself must be known
			break
		}
		if k := x.agree(p, low); k > match {
			from, match = p+1, k
		}
		if match == Most {
			break
		}
		p = x.prev[p&(len(x.ids)-1)]
	}
	if match < Least { // pairs that share a hash
		return dst, 0
	}
	base := len(dst)
	for i := range n {
		if p := from + i; p < x.n {
			dst = append(dst, int(x.id(p)))
		} else {
			dst = append(dst, dst[base+p-x.n])
		}
	}
	return dst, match
}

// agree counts the tokens that end at p and are those that end the text.
func (x *Index) agree(p, low int) int {
	k := 0
	for k < Most && p-k >= low && x.id(p-k) == x.id(x.n-1-k) {
		k++
	}
	return k
}
