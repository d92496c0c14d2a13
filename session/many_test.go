package session

import (
	"bufio"
	"encoding/base64"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// prose returns English text to make threads of: the comments of Go's standard
// library, which is there wherever a test runs.
func prose(t testing.TB, files int) string {
	t.Helper()
	var b strings.Builder
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no Go to take text from: %v", err)
	}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(p string, d os.DirEntry, err error) error {
		if err != nil || files == 0 {
			return filepath.SkipAll
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.Contains(p, "testdata") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil || f.Doc == nil && len(f.Comments) < 8 {
			return nil
		}
		files--
		for _, g := range f.Comments {
			b.WriteString(g.Text())
		}
		return nil
	})
	if err != nil || b.Len() < 1<<16 {
		t.Skipf("no Go sources to take text from: %v", err)
	}
	return b.String()
}

// A cutter turns text into tokens like those of the real vocabulary: the
// longest known piece at every place. Without the vocabulary's rank file beside
// the checkout, words are pieces and their first use is their rank.
type cutter struct {
	rank    map[string]int32
	longest int
	real    bool
}

func newCutter(t testing.TB) *cutter {
	c := &cutter{rank: map[string]int32{}, longest: 24}
	dir, err := os.Getwd()
	check(t, err)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			break
		}
	}
	f, err := os.Open(filepath.Join(dir, "..", "shared", "data", "kimi-tokenizer", "tiktoken.model"))
	if err != nil {
		return c
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, rank, _ := strings.Cut(lines.Text(), " ")
		piece, err := base64.StdEncoding.DecodeString(text)
		check(t, err)
		n, err := strconv.Atoi(rank)
		check(t, err)
		c.rank[string(piece)] = int32(n)
	}
	c.real = true
	return c
}

func (c *cutter) cut(text string) (toks []Token) {
	for len(text) > 0 {
		n := 1
		if c.real {
			for n = min(c.longest, len(text)); n > 1; n-- {
				if _, ok := c.rank[text[:n]]; ok {
					break
				}
			}
		} else if i := strings.IndexByte(text[1:], ' '); i >= 0 {
			n = min(1+i, 6)
		}
		id, ok := c.rank[text[:n]]
		if !ok {
			id = int32(len(c.rank))
			c.rank[text[:n]] = id
		}
		toks = append(toks, Token{ID: id, Channel: InAnswer, Text: text[:n]})
		text = text[n:]
	}
	return toks
}

// TestManyThreads fills a store with threads of 100 turns: questions of about
// 150 bytes, answers of about 1,250, a third of them thinking. The file must
// stay under 1.2 times the raw text and ids (four bytes each). In the long form
// there are 10,000 threads, and listing all, searching and opening must each
// stay under 100 ms.
func TestManyThreads(t *testing.T) {
	threads, files := rounds(60, 60, 10000), rounds(150, 150, 4000)
	text := prose(t, files)
	c := newCutter(t)
	s := newStore(t, nil)
	ctx := t.Context()
	r := rand.New(rand.NewPCG(41, 42))
	all := c.cut(text)
	passage := func(n int) *Body { // n tokens from anywhere
		at := r.IntN(len(all) - n)
		b := &Body{}
		b.add(slices.Clone(all[at : at+n]))
		return b
	}
	started := time.Now()
	var ids []ID
	for range threads {
		id := newID()
		ids = append(ids, id)
		check(t, s.update(ctx, "test", func(conn *conn) error {
			key, err := s.createTx(conn, id, "", "/home/ada/core")
			if err != nil {
				return err
			}
			set, err := settingsKey(conn, Settings{Model: "k3", Fingerprint: "f", Temperature: 0.6})
			if err != nil {
				return err
			}
			parent := int64(0)
			for turn := range 100 {
				if turn%2 == 0 {
					q := passage(10 + r.IntN(50))
					parent, err = s.addComplete(conn, key, parent, 0, NewTurn{Role: User, Text: q.Text, Prompt: q.IDs()})
				} else {
					toks := passage(100 + r.IntN(400)).Tokens
					for i := range len(toks) / 3 {
						toks[i].Channel = InThinking
					}
					b := &Body{}
					b.add(toks)
					row := turnRow{id: newID(), thread: key, parent: parent, role: Assistant, status: Done, settings: set, seed: uint64(turn)}
					if parent, err = s.addTurn(conn, row, 0, 0); err == nil {
						err = writeBody(conn, parent, b)
					}
				}
				if err != nil {
					return err
				}
			}
			b, err := branchByName(conn, key, "")
			if err != nil {
				return err
			}
			return b.moveTo(conn, parent)
		}))
	}
	filled := time.Since(started)
	z := must[Size](t)(s.Size(ctx))
	raw := z.Text + 4*z.IDs
	ratio := float64(z.File) / float64(raw)
	t.Logf("%d turns in %v: text %.1f MB, %.1f M ids (%.2f bytes of text each, real vocabulary: %v), file %.1f MB = %.3f of raw",
		z.Turns, filled.Round(time.Second), float64(z.Text)/1e6, float64(z.IDs)/1e6, float64(z.Text)/float64(z.IDs), c.real, float64(z.File)/1e6, ratio)
	if ratio >= 1.2 {
		t.Errorf("the file takes %.3f times the raw text and ids, want under 1.2", ratio)
	}
	breakdown(t, s)
	timeQueries(t, s, ids, r)
	sample := must[*Thread](t)(s.Load(ctx, ids[len(ids)/2], LoadOptions{Bodies: true}))
	if len(sample.Turns) != 100 || sample.TurnCount != 100 {
		t.Errorf("%d turns", len(sample.Turns))
	}
}

// timeQueries times what a user waits for. Only the long form judges, by the
// best of five: the others tell what else the machine was doing.
func timeQueries(t *testing.T, s *Store, ids []ID, r *rand.Rand) {
	ctx := t.Context()
	took := map[string][]time.Duration{}
	measure := func(name string, f func() error) {
		t.Helper()
		start := time.Now()
		check(t, f())
		took[name] = append(took[name], time.Since(start))
	}
	for range 5 {
		measure("list all", func() error {
			list, err := s.List(ctx, ListOptions{})
			if len(list) != len(ids) {
				t.Errorf("%d listed", len(list))
			}
			return err
		})
		measure("open", func() error {
			return second(s.Load(ctx, ids[r.IntN(len(ids))], LoadOptions{Bodies: true}))
		})
		measure("find by prefix", func() error { return second(s.FindThread(ctx, ids[r.IntN(len(ids))].String())) })
		for _, q := range []string{"goroutine ", "the", "deadlock mutex ", `"the caller must"`, `"is not safe"`, "zzqqxx", "unmarsh", "a"} {
			measure("search "+q, func() error { return second(s.Search(ctx, q, SearchOptions{})) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(took)) {
		d := slices.Sorted(slices.Values(took[name]))
		t.Logf("%-28s best %8.2f, median %8.2f, worst %8.2f ms", name, ms(d[0]), ms(d[len(d)/2]), ms(d[len(d)-1]))
		if *many && d[0] > 100*time.Millisecond {
			t.Errorf("%s took %v at best, want under 100 ms", name, d[0])
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// breakdown logs what the file is made of.
func breakdown(t *testing.T, s *Store) {
	check(t, s.view(t.Context(), "test", func(c *conn) error {
		for _, part := range [][2]string{
			{"text", "octet_length(text) FROM body"}, {"thinking", "octet_length(reasoning) FROM body"},
			{"ids", "octet_length(ids) FROM tokens"}, {"lengths", "octet_length(lens) FROM tokens"}, {"index of words", "octet_length(block) FROM words_data"},
		} {
			what, from, _ := strings.Cut(part[1], " ")
			n, err := c.number("SELECT sum(" + what + ") " + from)
			if err != nil {
				return err
			}
			t.Logf("%-28s %8.1f MB", part[0], float64(n)/1e6)
		}
		return nil
	}))
}
