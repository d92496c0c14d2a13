package kernel

// Row writes row r of a matrix to dst as float32, len(dst) = m.Cols: the lookup of
// an embedding.
func Row(dst []float32, m *Matrix, r int) { decodeRow(dst, m, r, 0) }

// Exp is e^x as every level computes it.
func Exp(x float32) float32 { return exp32(x) }
