// Command asm writes the assembly levels of package kernel: avx2 and avx512 for
// amd64, neon for arm64, and the Go declarations that go with them.
//
//	cd engine/kernel/_asm && go run .     # or: go generate ./engine/kernel
//	sh engine/kernel/_asm/check.sh        # fails if the written files are stale
//
// Every kernel is written once, against the small vector machine of machine.go
// and ops.go: 32-bit lanes, a handful of operations, and the width as a number.
// The three instruction sets are three columns of the same table, so what is
// tested on one of them says much about the others. Only the unpacking of weights
// (unpack.go, matvec.go) differs from set to set.
//
// A running sum of a dot product is 16 lanes, that is 2 registers of avx2, 1 of
// avx512, 4 of neon.
//
// The Go assembler knows few vector float instructions of arm64; they are
// written as words with the usual spelling beside them. The encodings are those
// of the Arm Architecture Reference Manual (A64, Advanced SIMD).
package main
