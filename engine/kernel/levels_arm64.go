//go:build !noasm

package kernel

// archTables returns the assembly levels of this architecture, slowest first.
// Every arm64 processor has NEON.
func archTables() []*Table {
	return []*Table{newTable("neon", neonPrimitives(), mxBytes())}
}
