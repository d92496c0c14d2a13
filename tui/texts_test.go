package tui_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"deltafin/tui"
	"deltafin/tui/pane"
	"deltafin/tui/text"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

// inside are words of the program's inside, which nothing on the screen says.
var inside = regexp.MustCompile(`(?i)\b(goroutine|mutex|nil|backend|sampler|snapshot|struct|errno|EOF|ctx|syscall|journal|sqlite|hedged?|arena|mailbox|bubbletea|not implemented|todo)\b|deltafin/`)

// TestEveryCardCanBeRead: in the smallest window that shows text, a card of every
// state is there to its last word, with its keys; in larger ones with its frame.
func TestEveryCardCanBeRead(t *testing.T) {
	for _, state := range tuitest.Names() {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {120, 40}, {200, 60}} {
			s := open(t, state, size[0], size[1])
			var p tui.Sample
			s.f.Snapshot(&p)
			c := p.Card
			if c == nil {
				continue
			}
			if happened, safe, do := c.Parts(); happened == "" || safe == "" || do == "" {
				t.Errorf("%s: a part is missing: %q", state, c.Text)
			}
			want := strings.Join(strings.Fields(c.Text), "")
			if len(c.Choices) == 0 {
				want += "escputsthisaway"
			}
			for _, k := range c.Choices {
				want += k.Key + strings.ReplaceAll(k.Label, " ", "")
			}
			// The text of the card without what the frame adds to it.
			got := regexp.MustCompile(`[ |\n]`).ReplaceAllString(middleOf(s.m.View(), size[0]), "")
			if !strings.Contains(got, strings.ReplaceAll(want, "|", "")) {
				t.Errorf("%s at %dx%d lacks a part of %q:\n%s", state, size[0], size[1], c.Text, s.m.View())
			}
			if framed := strings.Contains(s.m.View(), "- "+c.Title+" -"); framed != (size[1] >= 24) {
				t.Errorf("%s at %dx%d: framed %v", state, size[0], size[1], framed)
			}
		}
	}
}

// middleOf takes the columns beside the text away, and the styles.
func middleOf(frame string, w int) string {
	var out []string
	for _, row := range strings.Split(frame, "\n") {
		row = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(row, "")
		from, to := 0, w
		if w >= 170 {
			from, to = 36, w-60
		} else if w >= 110 {
			to = w - 42
		}
		out = append(out, text.Cut(text.CutLeft(row, w-from), to-from))
	}
	return strings.Join(out, "\n")
}

// TestEveryStateHasItsWord: the header tells the states apart, also in the smallest
// window, and what is broken or waits for the user has a colour of its own.
func TestEveryStateHasItsWord(t *testing.T) {
	words := map[string]string{
		"setup": "SETUP", "missing": "SETUP", "loading": "LOADING 42%", "empty": "IDLE", "idle": "DONE in 19m41s", "full": "FULL", "restoring": "RESTORING",
		"prefill": "PREFILL 38%", "thinking": "THINK 0.97 t/s", "decoding": "DECODE 0.97 t/s", "saving": "SAVING", "pausing": "PAUSING", "paused": "PAUSED",
		"recovered": "RECOVERED", "diskfull": "DISK FULL", "stopped": "STOPPED", "lost": "STOPPED d3", "spoiled": "STOPPED data", "changed": "OTHER MODEL",
		"lowmemory": "LOW MEMORY   DECODE", "slow": "SLOW d4   DECODE", "surviving": "LOST d3   DECODE", "mended": "MENDED 12   DECODE", "readonly": "READ ONLY   DECODE",
	}
	th := look(t, theme.Dark, theme.TrueColour)
	plain := th.Heading.Render("x")
	for _, state := range tuitest.Names() {
		if words[state] == "" {
			t.Errorf("%s has no word", state)
		}
		for _, w := range []int{40, 80, 200} {
			if head, _, _ := strings.Cut(open(t, state, w, 24).m.View(), "\n"); !strings.Contains(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(head, ""), words[state]) {
				t.Errorf("%s at %d columns: %q", state, w, head)
			}
		}
		head, _, _ := strings.Cut(openIn(t, state, 80, 24, th).m.View(), "\n")
		first, _, _ := strings.Cut(words[state], "   ")
		alone := strings.Contains(head, "m"+first+"\x1b") && !strings.Contains(head, strings.Replace(plain, "x", first, 1))
		var p tui.Sample
		tuitest.New(state).Snapshot(&p)
		quiet := p.State.Busy() && len(p.Marks) == 0 && !p.ReadOnly && !p.Pausing || state == "setup" || state == "missing" || state == "loading" || state == "empty"
		if alone == quiet {
			t.Errorf("%s: the word has a colour of its own: %v; %q", state, alone, head)
		}
	}
}

// sentences are the texts in the sources of a folder that a user can meet: literals
// with at least three words.
func sentences(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			if err == nil && len(strings.Fields(s)) >= 3 && !strings.HasPrefix(s, "tui: ") { // those are for who writes programs
				out[s] = files.Position(lit.Pos()).String()
			}
			return true
		})
	}
	return out
}

// TestTextsOfTheScreen: every sentence of the screen fits two rows of the reference
// window, speaks of nothing inside, and is tidy.
func TestTextsOfTheScreen(t *testing.T) {
	n := 0
	for _, folder := range []string{".", "pane", "overlay", "chart"} {
		for s, at := range sentences(t, folder) {
			n++
			if word := inside.FindString(s); word != "" {
				t.Errorf("%s: %q is a word of the inside: %s", at, word, s)
			}
			for _, line := range strings.Split(s, "\n") {
				if text.Width(line) > 2*78 {
					t.Errorf("%s: %d cells: %s", at, text.Width(line), line)
				}
			}
			if strings.Contains(s, "!") || strings.Contains(s, " ,") {
				t.Errorf("%s is untidy: %q", at, s)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d sentences were found", n)
	}
}

// TestCardsWithoutRoom: however long a card and low the window, what to do stays.
func TestCardsWithoutRoom(t *testing.T) {
	for h := 10; h < 30; h++ {
		s := open(t, "lost", 60, h)
		s.f.Set(func(p *tui.Sample) {
			p.Card = pane.NewCard("Long", strings.Repeat("A long story about what happened. ", 30), "Nothing is lost.", "Press r in the end.", p.Card.Choices...)
		})
		s.send(tui.TickForTest)
		checkFrame(t, "long card", s.m.View(), 60, h)
		if v := s.m.View(); !strings.Contains(v, "Press r in the end.") || !strings.Contains(v, "r try again") {
			t.Errorf("60x%d:\n%s", h, v)
		}
	}
}
