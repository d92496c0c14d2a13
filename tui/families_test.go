package tui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui"
	"deltafin/tui/pane"
	"deltafin/tui/tuitest"
)

// TestFamilies names the tests that a change of the screen must pass, by family, and
// fails when one of them has gone.
func TestFamilies(t *testing.T) {
	for _, f := range []struct {
		family string
		tests  map[string]string // name to file
	}{
		{"every size, every state: exactly h rows of w cells", map[string]string{
			"TestFrameFitsEveryWindow": "screen_test.go", "TestPanelsFit": "pane/pane_test.go", "TestClampIsExact": "text/text_test.go"}},
		{"golden frames at four sizes, one in colour", map[string]string{
			"TestGoldenFrames": "screen_test.go", "TestEveryStateHasItsWord": "texts_test.go"}},
		{"streaming oracle: byte by byte as at once", map[string]string{
			"TestStreamedFrameEqualsWhole": "screen_test.go", "TestStreamingEqualsOneShot": "md/markdown_test.go"}},
		{"width corpus, and escapes shown as text", map[string]string{
			"TestWidthCorpus": "text/text_test.go", "TestWidthCorpusOnTheScreen": "families_test.go", "TestModelOutputIsNeverExecuted": "screen_test.go"}},
		{"a made-up engine with a clock of its own; tests wait for idle", map[string]string{
			"TestKeys": "screen_test.go", "TestEveryPaneCanBeReached": "focus_test.go", "TestClockOnlyWhileWorking": "rest_test.go"}},
		{"pseudo-terminals: mute, closed, terminated, panic, no colour, pipes", map[string]string{
			"TestScreenOnAMuteTerminal": "../cmd/deltafin/screen_full_test.go", "TestMuteTerminalDelaysNothing": "../cmd/deltafin/screen_test.go",
			"TestScreenClosedStopsNothing": "../cmd/deltafin/screen_full_test.go", "TestScreenTerminated": "../cmd/deltafin/screen_full_test.go",
			"TestPanicRestoresTheTerminal": "run_unix_test.go", "TestScreenWithoutColour": "../cmd/deltafin/screen_full_test.go",
			"TestPipesHaveNoEscapes": "../cmd/deltafin/backend_pipes_test.go", "TestNoQuestionsBeforeMain": "theme/aterm/aterm_test.go"}},
		{"cost: a clock only while working, a day with flat memory, what a frame takes", map[string]string{
			"TestClockOnlyWhileWorking": "rest_test.go", "TestADayOfWorkHasFlatMemory": "families_test.go", "BenchmarkIdle": "cost_unix_test.go", "BenchmarkTokenASecond": "cost_unix_test.go",
			"BenchmarkFrame120x40": "screen_bench_test.go", "BenchmarkOpenLong": "screen_bench_test.go", "BenchmarkScrollLong": "screen_bench_test.go"}},
		{"killed at random points: every thread opens, one token lost at most", map[string]string{
			"TestKilledWriters": "../session/kill_test.go", "TestKilledAnswers": "../session/run/kill_test.go"}},
		{"the program in a real terminal emulator", map[string]string{
			"TestFromFirstStartToResumedAnswer": "../cmd/deltafin/tmux_test.go", "TestFirstFrameIsTheGolden": "../cmd/deltafin/backend_tmux_test.go",
			"TestRealWindowEqualsFrame": "real_unix_test.go"}},
		{"several windows: watch, ask for the engine, leave, come back", map[string]string{
			"TestASecondWindowWatchesAndAsks": "../cmd/deltafin/attach_screen_test.go", "TestDetachedOwnerHandsOver": "../cmd/deltafin/attach_screen_test.go",
			"TestHandingOver": "../cmd/deltafin/attach_screen_test.go", "TestEndedScreenTakesNoKeys": "run_unix_test.go"}},
		{"nothing typed is lost, nothing read moves", map[string]string{
			"TestNothingTypedIsLost": "input_test.go", "TestScrolledUpStandsStill": "still_test.go"}},
	} {
		for name, file := range f.tests {
			src, err := os.ReadFile(filepath.FromSlash(file))
			if err != nil || !strings.Contains(string(src), "\nfunc "+name+"(") {
				t.Errorf("%s: %s is not in %s: %v", f.family, name, file, err)
			}
		}
	}
}

// odd is what text from a model, a file name or a user may hold.
var odd = []string{"三种测年方法的比较", "ﾊﾝｶｸ", "e\u0301a\u0308o\u0302", "👩‍👩‍👧‍👦👍🏽🏳️‍🌈", "❤️⚠️1️⃣", "🇨🇭🇯🇵🇨", "שָׁלוֹם مرحبا \u202eabc\u202c", "a\tb\r\nc", "\x1b[31mred\x1b[0m\x07\x00\u009b2J", "\u200b\ufeff\u00ad", "\xff\xfe\xe4"}

// TestWidthCorpusOnTheScreen: whatever text stands in the thread, its title, the
// queue, names, cards and lines, every frame has its size and nothing is executed.
func TestWidthCorpusOnTheScreen(t *testing.T) {
	for i, text := range odd {
		s := open(t, "decoding", 80, 24)
		long := strings.Repeat(text+" ", 12)
		th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x7a1d000000000001, Title: long, Branch: text}}
		th.Turns = []session.Turn{{ID: 1, Role: session.User, Status: session.Done, Created: tuitest.Now, Body: &session.Body{Text: long}}}
		th.Branches = []session.Branch{{Name: text, Leaf: 1, Tip: 1}}
		s.f.Put(th)
		s.f.Set(func(p *tui.Sample) {
			p.Tokens = tuitest.Tokens(long, "# "+long+"\n\n| "+text+" | b |\n|---|---|\n| "+long+" | "+text+" |\n\n```\n"+long+"\n```\n")
			p.Notice, p.Queue[0].Text, p.Drives[0].Name, p.Verb = long, long, text, text
			p.Marks = []pane.Mark{{Text: text}}
			p.Card = pane.NewCard(long, long, long, long, pane.Choice{Key: "r", Label: text})
			p.Answers++
		})
		s.send(tui.TickForTest)
		for _, keys := range []string{"", "f3", "esc", "f2"} {
			if keys != "" {
				s.press(keys)
			}
			for _, size := range [][2]int{{1, 1}, {40, 10}, {41, 11}, {80, 24}, {110, 30}, {131, 40}, {200, 60}} {
				s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				v := s.m.View()
				checkFrame(t, fmt.Sprint("text ", i, " ", keys), v, size[0], size[1])
				for _, bad := range []string{"\x1b[31m", "\x07", "\x00", "\u009b", "\u202e"} {
					if strings.Contains(v, bad) {
						t.Errorf("text %d: %q reaches the terminal", i, bad)
					}
				}
			}
		}
	}
}

// TestADayOfWorkHasFlatMemory: answers of 500 tokens, one after the other, a look for
// each token and a frame for every fourth. With -every it is 24 hours at a token a
// second.
func TestADayOfWorkHasFlatMemory(t *testing.T) {
	hours := 1
	if *every {
		hours = 24
	}
	s := open(t, "decoding", 120, 40)
	all := tuitest.Tokens(tuitest.Thoughts, strings.Repeat(tuitest.Answer, 2))[:500]
	now, id := tuitest.Now, session.ID(100)
	work := func(tokens int) uint64 {
		for n := range tokens {
			if n%len(all) == 0 {
				id++
				now = now.Add(time.Minute)
			}
			s.f.Set(func(p *tui.Sample) {
				p.Turn, p.Began, p.Tokens, p.Answers = id, now, all[:n%len(all)+1], int(id)
				p.Times = append(p.Times[max(0, len(p.Times)-len(all)):len(p.Times):len(p.Times)], time.Second)
			})
			s.send(tui.TickForTest)
			if n%4 == 0 {
				s.m.View()
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := work(2 * len(all))
	after := work(hours * 3600)
	if after > before+4<<20 {
		t.Errorf("%d MB held before, %d MB after %d hours", before>>20, after>>20, hours)
	}
	t.Logf("%d kB held before, %d kB after %d hours", before>>10, after>>10, hours)
}
