package k3

import (
	"reflect"
	"testing"
)

// held adds up the float32 and int32 slices that a value owns, by capacity. What
// belongs to the model, the pool and the states is not followed.
func held(v reflect.Value, seen map[uintptr]bool) (n int64) {
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() || v.Cap() == 0 {
			return 0
		}
		switch v.Type().Elem().Kind() {
		case reflect.Float32, reflect.Int32:
			if seen[v.Pointer()] {
				return 0 // a second view of the same buffer
			}
			seen[v.Pointer()] = true
			return 4 * int64(v.Cap())
		case reflect.Slice:
			for i := range v.Len() {
				n += held(v.Index(i), seen)
			}
		}
	case reflect.Array:
		if v.Type().Elem().Kind() != reflect.Slice {
			return 0
		}
		for i := range v.Len() {
			n += held(v.Index(i), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "jobs", "first", "situ", "mix", "norm", "gather", "parts", "absorb", "attend", "expand":
			default:
				n += held(v.Field(i), seen)
			}
		}
	}
	return n
}

// TestPassBytes compares what is foretold with what a Runner holds after its
// largest pass.
func TestPassBytes(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		m := openModel(t, "../testdata/golden/"+name)
		for _, rows := range []int{1, 2, 7, 40} {
			for _, parts := range []int{1, 3} {
				pool := newPool(t, 2)
				r := m.NewRunner(pool)
				var list []Part
				for i := range parts {
					ids := make([]int, rows)
					for k := range ids {
						ids[k] = (k*31 + i*7 + 3) % m.cfg.Vocab
					}
					list = append(list, Part{m.NewState(), ids})
				}
				if _, err := r.ForwardAll(t.Context(), list, LastLogits); err != nil {
					t.Fatal(err)
				}
				got := held(reflect.ValueOf(r).Elem(), map[uintptr]bool{})
				want := PassBytes(m.cfg, Pass{Rows: rows * parts, Parts: parts, Workers: 2, Positions: rows})
				// The last expert of a wave may add fewer rows than it could, and
				// small slices are rounded up.
				if d := want - got; d < -1024-want/100 || d > 1024+want/10 {
					t.Errorf("%s, %d rows in %d parts: %d bytes are foretold, %d held", name, rows*parts, parts, want, got)
				}
			}
		}
	}
}
