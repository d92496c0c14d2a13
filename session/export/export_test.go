package export

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"deltafin/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func open(t testing.TB) *session.Store {
	t.Helper()
	s, err := session.Open(context.Background(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// tid is the n-th turn's id.
func tid(n int) session.ID { return session.ID(n) * 0x1111111111111111 }

// sample is a thread with every feature, with fixed ids and times.
func sample() *session.Thread {
	at := func(min int) time.Time { return time.Date(2026, 3, 1, 14, 2+min, 0, 123e6, time.UTC) }
	set := session.Settings{Model: "k3", Fingerprint: "8f2c", KernelSet: "avx512", Temperature: 0.6, TopP: 0.95, Effort: "high"}
	answer := func(n, parent int, status session.Status, thinking, text string) session.Turn {
		b := &session.Body{Reasoning: thinking, Text: text, Tokens: []session.Token{
			{ID: 163585, Channel: session.InMarkup}, {ID: 11, Channel: session.InThinking, Text: thinking},
			{ID: 163586, Channel: session.InMarkup}, {ID: 12, Channel: session.InAnswer, Text: text[:len(text)/2]}, {ID: 13, Channel: session.InAnswer, Text: text[len(text)/2:]},
		}}
		return session.Turn{
			ID: tid(n), Parent: tid(parent), Role: session.Assistant, Status: status, Created: at(n), Ended: at(n + 38),
			Tokens: 5, Thinking: 1, Seed: 1<<63 + uint64(n), Settings: set, Stop: "end", Body: b,
		}
	}
	question := func(n, parent int, text string) session.Turn {
		return session.Turn{ID: tid(n), Parent: tid(parent), Role: session.User, Status: session.Done, Created: at(n), Ended: at(n), Body: &session.Body{Text: text}}
	}
	q1 := question(1, 0, "Compare the *three* dating methods\nfor the <ice> core.")
	q1.Sources = []session.Source{{Hash: "ab12", Name: "core_*.md", Kind: "file", Place: "/data/core.md", Bytes: 12, Tokens: 3, Range: "1-4"}}
	q1.Body.Tokens = []session.Token{{ID: 5}, {ID: 6}}
	q1.Tokens = 2
	a1 := answer(2, 1, session.Done, "Layer counting?", "## Where they part\n\n| method | error |\n|---|---|\n| layers | 1 % |\n\n- **old** by `melt`\n")
	a1.Timings = []session.Timing{
		{Started: at(2), Reused: 1902, Prefill: 2, PrefillT: 9 * time.Minute, Decode: 3, DecodeT: 3 * time.Second, Read: 77e9, HitRate: 0.93},
		{Started: at(9), Decode: 2, DecodeT: 2 * time.Second, Read: 5e8, HitRate: 0.5},
	}
	a2 := answer(4, 3, session.Interrupted, "x", "Cut in the middle:\n\n```go\nfunc main() {")
	a2.Stop = "break-in"
	a3 := answer(5, 1, session.Paused, "", "Half a character \xe5\x87")
	a3.Ended, a3.Origin = time.Time{}, &session.Origin{Turn: tid(2), Tokens: 3}
	return &session.Thread{
		ThreadInfo: session.ThreadInfo{ID: 0xfeed, Title: "Compare the three # methods", Folder: "/home/ada", Created: at(0), Updated: at(50), Branch: "main"},
		Turns:      []session.Turn{q1, a1, question(3, 2, "```\nan open fence"), a2, a3},
		Branches:   []session.Branch{{Name: "main", Leaf: tid(4), Tip: tid(4), Created: at(0)}, {Name: "main-2", Leaf: tid(5), Tip: tid(5), Created: at(3)}, {Name: "undone", Leaf: tid(1), Tip: tid(4), Created: at(4)}},
		Events:     []session.Event{{At: at(6), Turn: tid(2), Kind: "drive", Text: "drive 3 was slow"}, {At: at(7), Kind: "detached", Text: ""}},
	}
}

func write(t testing.TB, f func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	th := sample()
	opt := &Options{Thinking: true, Location: time.UTC}
	for name, f := range map[string]func(io.Writer) error{
		"thread.md":   func(w io.Writer) error { return Markdown(w, th, opt) },
		"thread.html": func(w io.Writer) error { return HTML(w, th, opt) },
		"thread.json": func(w io.Writer) error { return JSON(w, th) },
		"brief.md":    func(w io.Writer) error { return Markdown(w, th, &Options{Location: time.UTC}) },
	} {
		got := write(t, f)
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from the golden file (run with -update if that is meant):\n%s", name, got)
		}
	}
}

// TestRoundTrip: exporting an import gives the same bytes, for the sample and
// for the golden file of this form as it was written once.
func TestRoundTrip(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "thread.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, first := range map[string]string{
		"sample": write(t, func(w io.Writer) error { return JSON(w, sample()) }),
		"golden": string(golden),
	} {
		s := open(t)
		id, err := Import(t.Context(), s, strings.NewReader(first))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		th, err := s.Load(t.Context(), id, session.LoadOptions{Bodies: true})
		if err != nil {
			t.Fatal(err)
		}
		if again := write(t, func(w io.Writer) error { return JSON(w, th) }); again != first {
			t.Errorf("%s: the second export differs:\n%s", name, again)
		}
		if th.Tokens != 17 || th.TurnCount != 5 || th.Turns[1].Thinking != 1 {
			t.Errorf("%s: counts %+v", name, th.ThreadInfo)
		}
		if damage, err := s.Check(t.Context()); err != nil || len(damage) > 0 {
			t.Errorf("%s: %v %v", name, damage, err)
		}
		if _, err := Import(t.Context(), s, strings.NewReader(first)); !errors.Is(err, session.ErrExists) {
			t.Errorf("%s: importing twice: %v", name, err)
		}
		// What was imported is searched and continued like any thread.
		if hits, err := s.Search(t.Context(), "melt", session.SearchOptions{}); err != nil || len(hits) != 1 {
			t.Errorf("%s: %v %v", name, hits, err)
		}
		w, err := s.Lock(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.Continue(t.Context(), tid(5), session.AnswerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Append(t.Context(), session.Token{ID: 9, Channel: session.InAnswer, Text: "\x86"}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Finish(t.Context(), session.Outcome{Status: session.Done}), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestABranchAlone round-trips too, and holds nothing of the others.
func TestABranchAlone(t *testing.T) {
	s := open(t)
	if err := s.Import(t.Context(), sample()); err != nil {
		t.Fatal(err)
	}
	th, err := s.Load(t.Context(), 0xfeed, session.LoadOptions{Bodies: true, Branch: "main-2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(th.Turns) != 2 || len(th.Branches) != 1 {
		t.Fatalf("%d turns, %d branches", len(th.Turns), len(th.Branches))
	}
	first := write(t, func(w io.Writer) error { return JSON(w, th) })
	if strings.Contains(first, "Where they part") {
		t.Error("another branch's text is in the export")
	}
	other := open(t)
	id, err := Import(t.Context(), other, strings.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if th, err = other.Load(t.Context(), id, session.LoadOptions{Bodies: true}); err != nil {
		t.Fatal(err)
	}
	if again := write(t, func(w io.Writer) error { return JSON(w, th) }); again != first {
		t.Errorf("the second export differs:\n%s\n%s", first, again)
	}
	if md := write(t, func(w io.Writer) error { return Markdown(w, th, nil) }); strings.Contains(md, "Branch") {
		t.Errorf("one branch needs no heading:\n%s", md)
	}
}

func TestBadImports(t *testing.T) {
	s := open(t)
	good := write(t, func(w io.Writer) error { return JSON(w, sample()) })
	swap := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the sample has no %s", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"no JSON":               {"{", session.ErrInvalid},
		"another format":        {`{"format":"chat"}`, session.ErrInvalid},
		"a newer form":          {swap(`"version":1`, `"version":2`), session.ErrNewerSchema},
		"a parent missing":      {swap(`"parent":"1111111111111111"`, `"parent":"00000000000000aa"`), session.ErrInvalid},
		"an id twice":           {swap(`"id":"3333333333333333"`, `"id":"1111111111111111"`), session.ErrInvalid},
		"an unknown role":       {swap(`"role":"user"`, `"role":"root"`), session.ErrInvalid},
		"an unknown status":     {swap(`"status":"interrupted"`, `"status":"lost"`), session.ErrInvalid},
		"changed text":          {swap(`melt`, `malt!`), session.ErrInvalid},
		"a length too long":     {swap(`"lengths":[`, `"lengths":[9999,`), session.ErrInvalid},
		"an unknown channel":    {swap(`"channel":"thinking"`, `"channel":"aside"`), session.ErrInvalid},
		"a run too long":        {swap(`"count":1`, `"count":100000000`), session.ErrInvalid},
		"settings not there":    {swap(`"settings":0`, `"settings":7`), session.ErrInvalid},
		"a leaf missing":        {swap(`"leaf":"4444444444444444"`, `"leaf":"00000000000000aa"`), session.ErrInvalid},
		"redo leading nowhere":  {swap(`"leaf":"1111111111111111"`, `"leaf":"5555555555555555"`), session.ErrInvalid},
		"the branch missing":    {swap(`"branch":"main"`, `"branch":"trunk"`), session.ErrInvalid},
		"an event of no turn":   {swap("\"turn\":\"2222222222222222\",\"kind\"", "\"turn\":\"00000000000000aa\",\"kind\""), session.ErrInvalid},
		"a malformed id":        {swap(`"id":"000000000000feed"`, `"id":"feed"`), session.ErrInvalid},
		"a negative token":      {swap("163585", "-5"), session.ErrInvalid},
		"an id of zero":         {swap(`"id":"000000000000feed"`, `"id":""`), session.ErrInvalid},
		"a time that is no one": {swap(`"created":"2026-03-01T14:02:00.123Z"`, `"created":"yesterday"`), session.ErrInvalid},
	} {
		if _, err := Import(t.Context(), s, strings.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	list, err := s.List(t.Context(), session.ListOptions{})
	if err != nil || len(list) != 0 {
		t.Errorf("refused imports left %v (%v)", list, err)
	}
}

// TestHTMLRunsAndFetchesNothing: whatever a model or a user wrote.
func TestHTMLRunsAndFetchesNothing(t *testing.T) {
	evil := []string{
		"<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "![track](https://evil.example/p.png)", "![x](javascript:alert(1))",
		"[x](javascript:alert(1))", "[x](data:text/html,<script>1</script>)", "<https://ok.example>", "<a href='javascript:1'>x</a>",
		"<style>body{display:none}</style>", "<!-- c --><iframe src='https://evil.example'></iframe>", "</article></body>", "`<b>`", "<link rel=stylesheet href=//evil.example>",
		"[ref]: https://evil.example/x \"t\"\n![ref]", "https://evil.example/<script>",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		th := sample()
		th.Title = evil[r.IntN(len(evil))]
		for i := range th.Turns {
			text := evil[r.IntN(len(evil))] + []string{"\n\n", " ", "\n"}[r.IntN(3)] + evil[r.IntN(len(evil))]
			th.Turns[i].Body = &session.Body{Text: text, Reasoning: evil[r.IntN(len(evil))]}
			th.Turns[i].Sources = []session.Source{{Name: evil[r.IntN(len(evil))], Place: evil[r.IntN(len(evil))]}}
			th.Turns[i].Settings.Model = evil[r.IntN(len(evil))]
		}
		th.Branches[1].Name = evil[r.IntN(len(evil))]
		page := write(t, func(w io.Writer) error { return HTML(w, th, &Options{Thinking: true}) })
		body := page[strings.Index(page, "</style>"):]
		for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(body, -1) {
			name := strings.Trim(strings.FieldsFunc(tag, func(r rune) bool { return r == ' ' || r == '>' })[0], "</>")
			switch name {
			case "script", "img", "iframe", "link", "object", "embed", "form", "svg", "base":
				t.Fatalf("a live %s in\n%s", tag, page)
			}
			if low := strings.ToLower(tag); strings.Contains(low, "javascript:") || strings.Contains(low, "data:") || regexp.MustCompile(`\son\w+=`).MatchString(low) || strings.Contains(low, "src=") {
				t.Fatalf("a live %s in\n%s", tag, page)
			}
		}
		if strings.Count(page, "</article>") != len(th.Turns) || strings.Count(page, "<style>") != 1 {
			t.Fatalf("the page's own structure is broken:\n%s", page)
		}
	}
}

func TestOpenFencesAreClosed(t *testing.T) {
	for in, want := range map[string]string{
		"a":                      "a",
		"```\na":                 "```\na\n```",
		"```go\na\n```\nb":       "```go\na\n```\nb",
		"~~~~\n```\n~~~\n":       "~~~~\n```\n~~~\n~~~~",
		"``` `x`\ninline":        "``` `x`\ninline",
		"    ```\nindented":      "    ```\nindented",
		"   ````\nx\n```\nmore":  "   ````\nx\n```\nmore\n````",
		"```\na\n``` not closed": "```\na\n``` not closed\n```",
	} {
		if got := whole(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLengths(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 4400 * time.Millisecond: "4s", 6*time.Minute + 12*time.Second: "6m12s", 2*time.Hour + 5*time.Minute: "2h05m"} {
		if got := length(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add(write(f, func(w io.Writer) error { return JSON(w, sample()) }))
	f.Add(`{"format":"deltafin.thread","version":1,"turns":[{"id":"1111111111111111","tokens":{"ids":[1],"runs":[{"channel":"answer","count":1}],"lengths":[-1]}}]}`)
	s := open(f)
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Import(t.Context(), s, strings.NewReader(text))
		if err != nil {
			return
		}
		// What was taken must be whole, and must go again.
		th, err := s.Load(t.Context(), id, session.LoadOptions{Bodies: true})
		if err != nil {
			t.Fatal(err)
		}
		write(t, func(w io.Writer) error { return JSON(w, th) })
		write(t, func(w io.Writer) error { return HTML(w, th, nil) })
		if err := s.Trash(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(t.Context(), false, func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
