//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// archTables returns the assembly levels of this architecture, slowest first.
func archTables() []*Table {
	var out []*Table
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		out = append(out, newTable("avx2", avx2Primitives(), mxBytes()))
	}
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
		out = append(out, newTable("avx512", avx512Primitives(), mxFloats()))
	}
	return out
}
