package kernel

import (
	"os"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	levels := Levels()
	best := levels[len(levels)-1].Name
	for _, c := range []struct{ env, name, want string }{
		{"", "", best},
		{"generic", "", "generic"},
		{"generic", best, best},
		{best, "", best},
	} {
		t.Setenv(EnvLevel, c.env)
		got, err := Select(c.name)
		if err != nil || got.Name != c.want {
			t.Errorf("env %q, name %q: %v, %v; want %s", c.env, c.name, got, err, c.want)
		}
	}
	t.Setenv(EnvLevel, "mmx")
	if _, err := Select(""); err == nil || !strings.Contains(err.Error(), "it has: generic") {
		t.Errorf("an unknown level gave %v", err)
	}
}

// TestCheckFindsAWrongLevel breaks one function at a time by the last bit.
func TestCheckFindsAWrongLevel(t *testing.T) {
	for name, breakIt := range map[string]func(*Table){
		"Softmax": func(l *Table) {
			l.Softmax = func(x []float32) { softmaxGeneric(x); nudge(&x[len(x)-1]) }
		},
		"MatMul": func(l *Table) {
			l.MatMul = func(s *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
				matMulGeneric(s, y, ldy, w, lo, hi, x, ldx, n)
				if w.Format == Int8 && n == 4 {
					nudge(&y[hi-1])
				}
			}
		},
		"KDAStep": func(l *Table) {
			l.KDAStep = func(out, s, q, k, v, decay []float32, beta float32, u []float32) {
				kdaStepGeneric(out, s, q, k, v, decay, beta, u)
				nudge(&s[len(s)-1])
			}
		},
	} {
		l := genericTable()
		if err := l.check(genericTable()); err != nil {
			t.Fatalf("the generic level against itself: %v", err)
		}
		breakIt(l)
		if err := l.check(genericTable()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a broken %s gave %v", name, err)
		}
	}
}

func nudge(v *float32) { *v *= 1 + 1.0/(1<<23) }

func BenchmarkCheck(b *testing.B) {
	levels := Levels()
	l := levels[len(levels)-1]
	for b.Loop() {
		if err := l.check(levels[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWantedLevelsRan: a test run that was meant for certain levels fails where
// the machine lacks one, instead of passing without having tested it.
func TestWantedLevelsRan(t *testing.T) {
	const variable = "DELTAFIN_TEST_LEVELS" // for example "avx2" or "neon"
	want := os.Getenv(variable)
	if want == "" {
		t.Skip(variable + " asks for no level")
	}
	for name := range strings.SplitSeq(want, ",") {
		if _, err := Select(name); err != nil {
			t.Errorf("%s asks for %s: %v", variable, name, err)
		}
	}
}
