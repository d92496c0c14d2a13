//go:build noasm || !(amd64 || arm64)

package kernel

// archTables returns the assembly levels of this architecture: none.
func archTables() []*Table { return nil }
