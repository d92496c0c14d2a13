//go:build !noasm && (amd64 || arm64)

package kernel

import (
	"math"
	"unsafe"
)

// The blocking of a product with many rows. A tile of weights is unpacked to
// float32 and passes over a block of x; wide tiles share what is loaded of x.
const (
	tile     = 8   // weight rows unpacked together; a multiple of tileRows
	tileCols = 512 // and columns: 16 KiB, half of a small L1
	// maxCols is the longest row that is not cut: a short second piece would cost
	// more than a larger tile (the 576 columns of the latent cache).
	maxCols = 640
	// blockRows is the most rows of x in a block. The block, tileCols wide, takes
	// 144 KiB, the lanes of strip*blockRows sums that wait between the columns 288:
	// both stay in the L2.
	blockRows = 72
	// With fewer rows of x than tiledRows unpacking does not pay; then fewBytes of
	// weights are used by all of them before the next are read.
	tiledRows = 6
	fewBytes  = 96 << 10
	// callBytes is what one call reads at most, some 100 microseconds: Go cannot
	// interrupt assembly, and the collector would wait for it.
	callBytes = 1 << 20
)

var negInf = float32(math.Inf(-1))

// negZero pads x where a row does not fill the lanes: with a weight of +0 the
// product is -0, and adding that changes no number, not even a zero's sign.
var negZero = float32(math.Copysign(0, -1))

// MatMul is matMulGeneric. A few rows of x go straight over the weights as they
// are stored. More rows share weights that are unpacked to float32 tile by tile.
func (s *simd) MatMul(sc *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	if lo >= hi || n <= 0 {
		return
	}
	// The primitives check nothing: what is too short must stop here.
	_, _ = y[(n-1)*ldy+hi-1], x[(n-1)*ldx+w.Cols-1]
	_ = w.Data[(hi-1)*w.Stride+w.Format.RowBytes(w.Cols)-1]
	_ = w.Scale[:hi*w.scaleStride()]
	raceProduct(y, ldy, lo, hi, x, ldx, w.Cols, n)
	if w.Format == Int8 && w.Cols%lanes != 0 {
		// No weight of K3 ends inside the lanes; padding a group would have to reach
		// into its scale's sum.
		matMulGeneric(sc, y, ldy, w, lo, hi, x, ldx, n)
		return
	}
	if n < tiledRows && w.Cols%lanes == 0 {
		s.matVecs(sc, y, ldy, w, lo, hi, x, ldx, n)
		return
	}
	blocks := (n + blockRows - 1) / blockRows
	even := ((n+blocks-1)/blocks + 2) / 3 * 3 // rows of x go three at a time
	for i := 0; i < n; i += even {
		m := min(even, n-i)
		for r := lo; r < hi; r += strip {
			s.strip(sc, y[i*ldy:], ldy, w, r, min(r+strip, hi), x[i*ldx:], ldx, m)
		}
	}
}

// matVecs multiplies with one row of x after the other. The weights are cut so
// that they come from memory for the first row and from the L2 for the others.
func (s *simd) matVecs(sc *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	k := w.Cols
	var permute func(dst, x *float32, blocks int)
	switch w.Format {
	case MXFP4:
		permute = s.permuteMX
	case BF16:
		permute = s.permuteBF16
	}
	p := sc.floats(n*k + 4*lanes)
	wait := p[n*k:] // for the lanes of four rows
	if permute != nil {
		for i := range n {
			permute(&p[i*k], &x[i*ldx], k/lanes)
		}
		x, ldx = p, k
	}
	bytes := callBytes
	if n > 1 {
		bytes = fewBytes
	}
	step := max(4, bytes/max(w.Stride, 1)&^3)
	for r := lo; r < hi; r += step {
		end := min(r+step, hi)
		for i := range n {
			s.matVec(y[i*ldy+r:i*ldy+end], w, r, &x[i*ldx], wait)
		}
	}
}

// matVec multiplies the rows from row on, as many as y has, with one x.
func (s *simd) matVec(y []float32, w *Matrix, row int, x *float32, wait []float32) {
	blocks, rows := w.Cols/lanes, len(y)
	data, ss := &w.Data[row*w.Stride], w.scaleStride()
	switch w.Format {
	case F32:
		s.matVecF32(&y[0], data, w.Stride, rows, x, blocks)
	case BF16:
		s.matVecBF16(&y[0], data, w.Stride, rows, x, blocks)
	case Int8:
		s.matVecInt8(&y[0], data, w.Stride, rows, x, blocks, &w.Scale[row*ss], ss, w.Group/lanes, &wait[0])
	case MXFP4:
		s.matVecMX(&y[0], data, w.Stride, rows, x, w.Cols/MXGroup, &w.Scale[row*ss], s.mx, &wait[0])
	}
}

// strip is the product of up to strip rows of w with up to blockRows rows of x.
func (s *simd) strip(sc *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	rest := w.Cols % lanes
	full := w.Cols - rest
	// Scratch: the unpacked tile, the lanes, the padded ends of x, a place for the
	// results of a tile that is not full, and the scales of an int8 tile.
	piece := tileCols
	if full <= maxCols {
		piece = full
	}
	if w.Format == Int8 { // whole groups
		piece = max(tileCols/w.Group*w.Group, min(w.Group, full))
	}
	wide := max(piece, lanes)
	buf := sc.floats(tile*wide + n*strip*lanes + n*lanes + n*tile + wide)
	wt, buf := buf[:tile*wide], buf[tile*wide:]
	factors, buf := buf[:wide], buf[wide:] // of int8: tile times at most wide/16 groups
	acc, buf := buf[:n*strip*lanes], buf[n*strip*lanes:]
	ends, short := buf[:n*lanes], buf[n*lanes:]
	if rest > 0 {
		for i := range n {
			e := ends[i*lanes : (i+1)*lanes]
			copy(e, x[i*ldx+full:i*ldx+w.Cols])
			for j := rest; j < lanes; j++ {
				e[j] = negZero
			}
		}
	}
	if w.Format == Int8 {
		clear(acc) // groups are added to what is there
	}
	for c, cols := 0, 0; c < w.Cols; c += cols {
		cols = min(piece, full-c)
		padded, from, gap := cols, x[c:], ldx
		if c == full { // what does not fill the lanes
			cols, padded, from, gap = rest, lanes, ends, lanes
		}
		for r := lo; r < hi; r += tile {
			g := gemm{s: s, y: y[r:], ldy: ldy, acc: acc[(r-lo)*n*lanes:], n: n}
			if c == 0 {
				g.mode |= 1
			}
			if c+cols == w.Cols {
				g.mode |= 2
			}
			rows := min(tile, hi-r)
			if rows < tile {
				g.y, g.ldy = short, tile
			}
			s.tile(&g, wt, w, r, rows, c, cols, padded)
			if w.Format == Int8 {
				scales(factors, w, r, rows, c, cols)
				g.groups(from, gap, cols, w.Group, factors)
			} else {
				g.piece(from, gap, padded/lanes)
			}
			if rows < tile && g.mode&2 != 0 {
				for i := range n {
					copy(y[i*ldy+r:i*ldy+hi], short[i*tile:(i+1)*tile])
				}
			}
		}
	}
}

// tile points g at columns [c, c+cols) of rows [r, r+rows) as float32, padded
// with zeros to a whole tile.
func (s *simd) tile(g *gemm, wt []float32, w *Matrix, r, rows, c, cols, padded int) {
	if w.Format == F32 && rows == tile && cols == padded {
		g.w, g.stride = (*float32)(unsafe.Pointer(&w.Data[r*w.Stride+4*c])), w.Stride
		return
	}
	for t := range rows {
		row := wt[t*padded : (t+1)*padded]
		if w.Format == Int8 { // the scales come later
			s.unpackInt8(&row[0], &w.Data[(r+t)*w.Stride+c], cols/lanes)
			continue
		}
		if cols == padded {
			s.unpack(row, w, r+t, c)
			continue
		}
		decodeRow(row[:cols], w, r+t, c)
		clear(row[cols:])
	}
	clear(wt[rows*padded : tile*padded])
	g.w, g.stride = &wt[0], 4*padded
}

// gemm is one tile of weights on its way over all rows of x.
type gemm struct {
	s      *simd
	y      []float32
	ldy    int
	acc    []float32
	w      *float32
	stride int // bytes
	n      int
	mode   int
}

// piece multiplies the tile, blocks blocks wide, with n rows of x, three at a
// time; the last four rows as two and two, since one alone leaves the pipes idle.
func (g *gemm) piece(x []float32, ldx, blocks int) {
	s := g.s
	for i := 0; i < g.n; {
		f, k := s.gemm3, 3
		switch left := g.n - i; {
		case left == 1:
			f, k = s.gemm1, 1
		case left == 2 || left == 4:
			f, k = s.gemm2, 2
		}
		f(&g.y[i*g.ldy], 4*g.ldy, &g.acc[i*tile*lanes], g.w, g.stride, tile/s.tileRows,
			&x[i*ldx], 4*ldx, blocks, g.mode)
		i += k
	}
}

// groups is piece for int8 codes, cols columns in groups of group; all groups
// pass over the same three rows of x while their lanes are in the first cache.
func (g *gemm) groups(x []float32, ldx, cols, group int, scales []float32) {
	s := g.s
	for i := 0; i < g.n; {
		f, k := s.gemmGroup3, 3
		switch left := g.n - i; {
		case left == 1:
			f, k = s.gemmGroup1, 1
		case left == 2 || left == 4:
			f, k = s.gemmGroup2, 2
		}
		for c := 0; c < cols; c += group {
			width, mode := min(group, cols-c), 0
			if c+width == cols {
				mode = g.mode
			}
			f(&g.y[i*g.ldy], 4*g.ldy, &g.acc[i*tile*lanes], at32(g.w, c), g.stride, tile/s.tileRows,
				&x[i*ldx+c], 4*ldx, width/lanes, mode, &scales[c/group*tile])
		}
		i += k
	}
}

// at32 is the address of p[i].
func at32(p *float32, i int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*i)) }

// scales gathers the scales of the groups in columns [c, c+cols) of rows
// [r, r+rows) as [group][tile], 0 for the rows that are missing.
func scales(dst []float32, w *Matrix, r, rows, c, cols int) {
	for g := c / w.Group; g*w.Group < c+cols; g++ {
		for t := range tile {
			dst[t] = 0
			if t < rows {
				dst[t] = w.scaleAt(r+t, g)
			}
		}
		dst = dst[tile:]
	}
}

// unpack writes columns [from, from+len(dst)) of row r as float32. from and
// len(dst) are multiples of 16, for MXFP4 of 32.
func (s *simd) unpack(dst []float32, w *Matrix, r, from int) {
	blocks := len(dst) / lanes
	switch w.Format {
	case F32:
		row := w.Data[r*w.Stride+4*from:]
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), row)
	case BF16:
		s.unpackBF16(&dst[0], &w.Data[r*w.Stride+2*from], blocks)
	case MXFP4:
		s.unpackMX(&dst[0], &w.Data[r*w.Stride+from/2], len(dst)/MXGroup, &w.Scale[r*w.scaleStride()+from/MXGroup], s.mx)
	case Int8:
		s.unpackInt8(&dst[0], &w.Data[r*w.Stride+from], blocks)
		for len(dst) > 0 {
			g := from / w.Group
			n := min(len(dst), (g+1)*w.Group-from)
			s.scale(&dst[0], n, w.scaleAt(r, g))
			dst, from = dst[n:], from+n
		}
	}
}
