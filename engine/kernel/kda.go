package kernel

// kdaStepGeneric runs one token through the state of one KDA head (spec 3.3).
// s is the state [K, V] row-major, changed in place; decay, k, q have K elements,
// v and out V. In this order, which matters (pitfall 20):
//
//	s[c] *= decay[c];  r = s^T k;  s[c] += k[c] * beta*(v - r);  out = s^T q
//
// Sums over the key channels c run in rising order. u is scratch of V floats.
func kdaStepGeneric(out, s, q, k, v, decay []float32, beta float32, u []float32) {
	nv := len(v)
	clear(u[:nv])
	for c, d := range decay {
		row := s[c*nv : (c+1)*nv]
		kc := k[c]
		for j := range row {
			row[j] *= d
			u[j] = fma32(row[j], kc, u[j])
		}
	}
	for j := range nv {
		u[j] = beta * (v[j] - u[j])
	}
	clear(out[:nv])
	for c := range decay {
		row := s[c*nv : (c+1)*nv]
		kc, qc := k[c], q[c]
		for j := range row {
			row[j] = fma32(kc, u[j], row[j])
			out[j] = fma32(row[j], qc, out[j])
		}
	}
}
