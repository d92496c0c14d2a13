package lookup

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// ids are the bytes of a text: a readable vocabulary.
func ids(text string) []int {
	var out []int
	for _, b := range []byte(text) {
		out = append(out, int(b))
	}
	return out
}

func text(ids []int) string {
	var out []byte
	for _, id := range ids {
		out = append(out, byte(id))
	}
	return string(out)
}

// longest is a text of the longest match.
const longest = "abcdefghijklmnopqrstuvwxyz123456"

func TestPropose(t *testing.T) {
	for _, c := range []struct {
		name, text string
		n          int
		want       string
		match      int
	}{
		{"nothing yet", "", 4, "", 0},
		{"one token", "a", 4, "", 0},
		{"nothing before", "ab", 4, "", 0},
		{"one token is no match", "xaya", 4, "", 0},
		{"a pair", "abcd-ab", 2, "cd", 2},
		{"nothing asked", "abcd-ab", 0, "", 0},
		{"longest wins over latest", "-abcX-bcY-abc", 1, "X", 4},
		{"latest among equals", "abX-abY_ab", 1, "Y", 2},
		{"capped at the most", longest + "0AB " + longest + "0", 2, "AB", Most},
		{"latest of capped ones", "0" + longest + "A-" + longest + "B 0" + longest, 1, "B", Most},
		{"a period goes on", "xyabab", 7, "abababa", 2},
		{"one token over and over", "aaa", 5, "aaaaa", 2},
		{"up to the end and round", "abc-abc", 6, "-abc-a", 3},
	} {
		x := New(1 << 10)
		x.Add(ids(c.text)...)
		got, match := x.Propose([]int{7}, c.n)
		if match != c.match || text(got[1:]) != c.want || got[0] != 7 {
			t.Errorf("%s: %q of %d after %q, want %q of %d", c.name, text(got[1:]), match, c.text, c.want, c.match)
		}
	}
}

// naive is what Propose says of a text that is known in full.
func naive(all []int, n int) (out []int, match int) {
	from := 0
	for p := len(all) - 2; p >= 1; p-- {
		k := 0
		for k < Most && k <= p && all[p-k] == all[len(all)-1-k] {
			k++
		}
		if k > match {
			from, match = p+1, k
		}
	}
	if match < Least {
		return nil, 0
	}
	all = slices.Clone(all)
	for i := range n {
		out = append(out, all[from+i])
		all = append(all, all[from+i])
	}
	return out, match
}

// TestAsTheNaiveSearch: on random texts of few tokens, piece by piece, it finds what a
// search through everything finds as long as few enough places are alike.
func TestAsTheNaiveSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		x, all := New(1<<11), []int(nil)
		kinds := 8 + rng.IntN(40)
		for range 700 { // more than the first room, so that it grows
			if len(all) > 20 && rng.IntN(30) == 0 { // quote something
				from := rng.IntN(len(all) - 10)
				quote := slices.Clone(all[from : from+10])
				all = append(all, quote...)
				x.Add(quote...)
			}
			id := rng.IntN(kinds)
			all = append(all, id)
			x.Add(id)
			got, match := x.Propose(nil, 5)
			want, wantMatch := naive(all, 5)
			alike := 0
			for p := range len(all) - 2 {
				if slices.Equal(all[p:p+2], all[len(all)-2:]) {
					alike++
				}
			}
			if alike < places/2 && (match != wantMatch || !slices.Equal(got, want)) {
				t.Fatalf("after %v: %v of %d, want %v of %d", all, got, match, want, wantMatch)
			}
		}
		if x.Len() != len(all) {
			t.Fatalf("%d tokens of %d", x.Len(), len(all))
		}
	}
}

// TestLimit: what is too long ago is forgotten, what is not is found, and memory does
// not grow.
func TestLimit(t *testing.T) {
	x := New(300) // 512
	mark := ids("needle")
	x.Add(mark...)
	for i := range 400 {
		x.Add(1000 + i)
	}
	x.Add(ids("needl")...)
	if got, match := x.Propose(nil, 1); match != 5 || text(got) != "e" {
		t.Errorf("405 tokens on: %q of %d", text(got), match)
	}
	size := len(x.ids)
	x = New(300)
	x.Add(mark...)
	for i := range 5000 {
		x.Add(1000 + i)
	}
	x.Add(ids("needl")...)
	if got, match := x.Propose(nil, 1); match != 0 {
		t.Errorf("5005 tokens on: %q of %d", text(got), match)
	}
	if len(x.ids) != size || len(x.ids) != 512 {
		t.Errorf("room for %d tokens, then %d, want 512", size, len(x.ids))
	}
}

// FuzzPropose: whatever the text and the limit, what is proposed followed the same
// tokens before, and a text that is short is searched in full.
func FuzzPropose(f *testing.F) {
	f.Add([]byte("abcabcabc"), 3)
	f.Add([]byte("to be or not to be"), 9)
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0}, 2)
	f.Add(slices.Repeat([]byte("abcdefghij-"), 60), 40)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = min(max(n, 0), 100)
		x := New(1)
		all := ids(string(data))
		x.Add(all...)
		got, match := x.Propose(nil, n)
		if match != 0 && (match < Least || match > Most || len(got) != n) || match == 0 && len(got) != 0 {
			t.Fatalf("%d tokens of a match of %d", len(got), match)
		}
		if n > 0 && len(all) <= places {
			if want, k := naive(all, n); k != match || !slices.Equal(got, want) {
				t.Fatalf("%v of %d, want %v of %d", got, match, want, k)
			}
		}
		if match == 0 {
			return
		}
		// Some place known has these tokens after the match.
		full := append(slices.Clone(all), got...)
		for p := match - 1; p < len(all)-1; p++ {
			if slices.Equal(full[p-match+1:p+1], all[len(all)-match:]) && slices.Equal(full[p+1:p+1+n], got) {
				return
			}
		}
		t.Fatalf("%v of %d never followed the end of %v", got, match, all)
	})
}

func BenchmarkAddAndPropose(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	x, draft := New(1<<16), []int(nil)
	for i := 0; b.Loop(); i++ {
		x.Add(rng.IntN(200))
		draft, _ = x.Propose(draft[:0], 8)
	}
}
