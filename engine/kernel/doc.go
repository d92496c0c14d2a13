// Package kernel is the arithmetic of the model: matrix products over weights as
// they lie in the files, norms, activations, the KDA state step, latent
// attention sums and the router's choice. It knows shapes and bytes, never
// layers, files or tokens.
//
// # One definition, several speeds
//
// Every operation is defined by a plain Go function (the generic level). The
// faster levels (avx2, avx512, neon) are assembly twins of it and must return
// the very same bits, on every machine: a thread that was begun on one computer
// continues with the same tokens on another. That works because the definition
// fixes the order of every sum and the rounding of every step:
//
//   - A dot product runs in 16 lanes. Column c belongs to lane c mod 16; a lane
//     takes its columns in rising order with a fused multiply-add (one rounding,
//     float32) from a start of +0. Columns past the end touch nothing. The lanes
//     are then folded: l += l+8 for l < 8, then l+4, l+2, l+1.
//   - Weights are converted to float32 before they are multiplied: BF16 and MXFP4
//     exactly (an MXFP4 value is first made a BF16 one, which is exact for every
//     code and scale).
//   - An int8 product sums up each group of codes as they are, in lanes of its own
//     from +0; then every lane of the row takes in the group's lane times the scale
//     of the group, with one fused multiply-add. Only the transposed product makes
//     a weight of a code first, as one rounded product code * scale.
//   - Sums over rows (the transposed product, the KDA state, latent sums) run in
//     rising row order, one fused multiply-add per row, per column.
//   - exp, sigmoid, tanh and what is made of them are polynomials given in
//     math.go, step by step, with their error bounds.
//
// Hence a product of many rows equals the product of each row alone, bit for
// bit (invariant 1 of the architecture): parallel work is split over outputs,
// heads and rows, never over a sum.
//
// # Levels
//
// generic is the definition, in plain Go. avx2 (with FMA) and avx512 (F, BW, DQ,
// VL) serve amd64, neon arm64; Select takes the best that the machine has, or the
// one that DELTAFIN_KERNEL names. The build tag noasm leaves generic alone. The
// assembly is written by the generator in _asm from one description of each
// kernel; simd.go says in plain Go what each of its functions does. Before a level
// is used it is compared with the definitions in a check of about two
// milliseconds; a difference is an error, not a slower way.
//
// A product with one row or a few of x reads weights as they lie in the file and
// unpacks them in registers. From six rows on, tiles of weights are unpacked to
// float32 once and stay in the first cache while the rows of x pass.
//
// # Use
//
// Select returns a Table (the level), NewPool the workers that run it. A Pool's
// MatMul and Do split work; the functions of the Table work on one piece, on the
// caller's goroutine. A Pool serves one caller at a time.
//
// The package allocates only in NewPool and when a scratch buffer has to grow.
// It has no global state and starts no goroutine outside a Pool.
//
// # Caveats
//
// Slices must not overlap, except where a comment allows it. A NaN is a NaN: which
// of its bit patterns comes out is not part of the contract. The bits hold for the
// usual modes of a processor (round to nearest, subnormals kept), which Go never
// changes. An input with many subnormals is slow on some processors.
package kernel
