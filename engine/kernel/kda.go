package kernel

// kdaStepGeneric runs one token through the state of one KDA head (spec 3.3).
// s is the state [K, V] row-major, changed in place; decay, k, q have K elements,
// v and out V. In this order, which matters (pitfall 20):
//
//	s[c] *= decay[c];  r = s^T k;  s[c] += k[c] * beta*(v - r);  out = s^T q
//
// Sums over the key channels c run in rising order. u is scratch of V floats.
func kdaStepGeneric(out, s, q, k, v, decay []float32, beta float32, u []float32) {
	kdaColumns(out, s, q, k, v, decay, beta, u, 0, len(v))
}

// kdaColumns is the step for the columns [from, to) of the state; no column
// knows of another.
func kdaColumns(out, s, q, k, v, decay []float32, beta float32, u []float32, from, to int) {
	if from == to {
		return
	}
	nv := len(v)
	out, v, u = out[from:to], v[from:to], u[from:to]
	clear(u)
	for c, d := range decay {
		row := s[c*nv+from : c*nv+to]
		kc := k[c]
		for j := range row {
			row[j] *= d
			u[j] = fma32(row[j], kc, u[j])
		}
	}
	for j := range u {
		u[j] = beta * (v[j] - u[j])
	}
	clear(out)
	for c := range decay {
		row := s[c*nv+from : c*nv+to]
		kc, qc := k[c], q[c]
		for j := range row {
			row[j] = fma32(kc, u[j], row[j])
			out[j] = fma32(row[j], qc, out[j])
		}
	}
}
