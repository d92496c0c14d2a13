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
// knows of another. The multiply-adds are fma32, written out for speed.
func kdaColumns(out, s, q, k, v, decay []float32, beta float32, u []float32, from, to int) {
	if from == to {
		return
	}
	nv := len(v)
	out, v, u = out[from:to], v[from:to], u[from:to]
	n := len(u)
	out = out[:n]
	clear(u)
	for c, d := range decay {
		row := s[c*nv+from : c*nv+to][:n]
		kc := k[c]
		for j := range row {
			a := row[j] * d
			row[j] = a
			t := float64(a)*float64(kc) + float64(u[j])
			if doubtful(t) {
				u[j] = fmaSlow(a, kc, u[j])
				continue
			}
			u[j] = float32(t)
		}
	}
	for j := range u {
		u[j] = beta * (v[j] - u[j])
	}
	clear(out)
	for c := range decay {
		row := s[c*nv+from : c*nv+to][:n]
		kc, qc := k[c], q[c]
		for j := range row {
			t := float64(kc)*float64(u[j]) + float64(row[j])
			a := float32(t)
			if doubtful(t) {
				a = fmaSlow(kc, u[j], row[j])
			}
			row[j] = a
			t = float64(a)*float64(qc) + float64(out[j])
			if doubtful(t) {
				out[j] = fmaSlow(a, qc, out[j])
				continue
			}
			out[j] = float32(t)
		}
	}
}
