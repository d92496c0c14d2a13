package kernel

import (
	"fmt"
	"os"
	"strings"
)

// A Table is one level of the kernels: the same functions at the speed of one
// instruction set. All levels return the same bits. Slices that belong together
// have the same length unless a comment says otherwise.
type Table struct {
	// Name is the level: generic, avx2, avx512 or neon.
	Name string

	// MatMul writes y[i*ldy+r] = sum over c of w[r][c]*x[i*ldx+c] for rows r in
	// [lo, hi) of w and i in [0, n).
	MatMul func(s *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int)
	// MatTMul writes y[i*ldy+j] = sum over r of x[i*ldx+r]*w[r][j] for columns j
	// in [lo, hi) (lo a multiple of 32) and i in [0, n).
	MatTMul func(s *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int)

	// Dot is the 16-lane dot product of two rows.
	Dot func(a, b []float32) float32
	// Add writes y += x.
	Add func(y, x []float32)
	// Axpy writes y = a*x + y.
	Axpy func(y []float32, a float32, x []float32)
	// FMA writes y = a*b + y element by element.
	FMA func(y, a, b []float32)
	// Scale writes y = a*y.
	Scale func(y []float32, a float32)

	// RMSNorm writes y = x / sqrt(mean(x^2) + eps) * w.
	RMSNorm func(y, x, w []float32, eps float32)
	// L2Norm writes x = x / sqrt(sum(x^2) + eps) * scale.
	L2Norm func(x []float32, eps, scale float32)
	// Softmax replaces x by its softmax.
	Softmax func(x []float32)

	// SiTU writes y = beta*tanh(g/beta)*sigmoid(g) * lin*tanh(u/lin).
	SiTU func(y, g, u []float32, beta, lin float32)
	// SiLU writes y = y*sigmoid(y).
	SiLU func(y []float32)
	// Sigmoid writes y = sigmoid(x).
	Sigmoid func(y, x []float32)
	// SigmoidMul writes y = y*sigmoid(g).
	SigmoidMul func(y, g []float32)
	// DecayLower writes y = exp(bound*sigmoid(a*(f+dt))).
	DecayLower func(y, f, dt []float32, a, bound float32)
	// DecaySoftplus writes y = exp(-a*softplus(f+dt)).
	DecaySoftplus func(y, f, dt []float32, a float32)

	// KDAStep runs one token through the state s [K, V] of one KDA head; u is
	// scratch of V floats. See kda.go.
	KDAStep func(out, s, q, k, v, decay []float32, beta float32, u []float32)

	// ReadBytes reads b and does nothing with it, and MulAdds does rounds times
	// MulAddsPerRound fused multiply-adds on registers: what a benchmark measures
	// the kernels against.
	ReadBytes       func(b []byte)
	MulAdds         func(rounds int)
	MulAddsPerRound int

	// blockWork is the number of multiplications of a product that take about 3
	// microseconds: less is not worth another worker.
	blockWork int
}

// genericTable is the level every machine has: the definitions themselves.
func genericTable() *Table {
	return &Table{
		Name:   "generic",
		MatMul: matMulGeneric, MatTMul: matTMulGeneric,
		Dot: dotGeneric, Add: addGeneric, Axpy: axpyGeneric, FMA: fmaGeneric, Scale: scaleGeneric,
		RMSNorm: rmsNormGeneric, L2Norm: l2NormGeneric, Softmax: softmaxGeneric,
		SiTU: situGeneric, SiLU: siluGeneric, Sigmoid: sigmoidGeneric, SigmoidMul: sigmoidMulGeneric,
		DecayLower: decayLowerGeneric, DecaySoftplus: decaySoftplusGeneric,
		KDAStep:   kdaStepGeneric,
		ReadBytes: readGeneric, MulAdds: mulAddsGeneric, MulAddsPerRound: lanes,
		blockWork: 1000,
	}
}

// EnvLevel is the environment variable that selects a level by name.
const EnvLevel = "DELTAFIN_KERNEL"

// Levels returns the levels that this machine can run, slowest first.
func Levels() []*Table { return append([]*Table{genericTable()}, archTables()...) }

// Select returns the level of that name; "" stands for the value of
// DELTAFIN_KERNEL, and if that is empty too, for the fastest level. A level that
// this machine lacks is an error that lists those it has. So is a level that does
// not return the bits of the generic one in a short check of all its functions.
func Select(name string) (*Table, error) {
	if name == "" {
		name = os.Getenv(EnvLevel)
	}
	levels := Levels()
	if name == "" {
		name = levels[len(levels)-1].Name
	}
	var have []string
	for i, t := range levels {
		if t.Name == name {
			if i > 0 {
				if err := t.check(levels[0]); err != nil {
					return nil, err
				}
			}
			return t, nil
		}
		have = append(have, t.Name)
	}
	return nil, fmt.Errorf("kernel level %q is not available on this machine; it has: %s", name, strings.Join(have, ", "))
}
