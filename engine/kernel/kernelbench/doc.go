// Package kernelbench measures the kernels on the shapes of Kimi K3 beside what
// the machine can do: rows of name, value, limit and ratio, as the architecture's
// "benchmarks speak one language" asks.
//
//	rows, err := kernelbench.Run(ctx, kernelbench.Options{Level: table, Workers: 2})
//
// A limit is never taken from another time: passes of the kernel alternate with
// passes of the loop that reads memory (or multiplies registers), and both are
// judged by the same quantile of their times. On a machine that is shared with
// others the figures go up and down together, the ratio stays.
//
// Weights lie in an arena of 16 experts that are used in rotation, 281 MB: far
// more than any cache, so a product reads memory. Bytes are those of the weights,
// scales included, and nothing else.
//
// It writes nothing, keeps nothing and starts no goroutine besides a kernel.Pool
// that it closes. It allocates about 300 MB while it runs.
package kernelbench
