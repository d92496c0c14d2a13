package kernel

// TopK writes the indices of the len(idx) largest values of score[e] + bias[e],
// largest first, the lower index first among equals (spec 3.5, step 2). bias may
// be nil. A NaN score is never preferred to a number.
func TopK(idx []int32, score, bias []float32) {
	n := 0
	var val [256]float32 // values of idx; more than 256 chosen is refused by the config
	for e, s := range score {
		if bias != nil {
			s += bias[e]
		}
		if n == len(idx) && !(s > val[n-1]) {
			continue
		}
		if n < len(idx) {
			n++
		}
		at := n - 1
		for at > 0 && (s > val[at-1] || val[at-1] != val[at-1] && s == s) {
			val[at], idx[at] = val[at-1], idx[at-1]
			at--
		}
		val[at], idx[at] = s, int32(e)
	}
}
