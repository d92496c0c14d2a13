package pane

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

func looks(t *testing.T) []*theme.Theme {
	t.Helper()
	var out []*theme.Theme
	for _, g := range []*theme.Glyphs{theme.ASCII(), theme.Block(), theme.Braille()} {
		th, err := theme.New(theme.Light, theme.Colour16, g)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, th)
	}
	return out
}

// odd are samples that a backend may give: nothing, many drives, values that are none.
func odd() []Sample {
	many := Sample{State: Decoding, Layer: 99, Layers: 93}
	for i := range 24 {
		many.Drives = append(many.Drives, Drive{Name: fmt.Sprint("驱动", i), Now: math.NaN(), Ceiling: 1e9, History: []float64{math.NaN(), 1e12, -1}, Lost: i == 3})
	}
	wild := Sample{Layers: 1, Times: []time.Duration{0, -1, time.Hour}, Token: TokenTime{Took: 1, Read: math.Inf(1), Stall: make([]time.Duration, 500)},
		Experts: Experts{Held: 5, Budget: 1, Share: [][]float64{{math.NaN()}, {}}}, Prefetch: Prefetch{Late: 1}, Queue: make([]QueueItem, 40)}
	return []Sample{{}, many, wild}
}

func TestPanelsFit(t *testing.T) {
	for _, th := range looks(t) {
		for _, p := range All() {
			for i, s := range odd() {
				for w := 0; w <= 60; w += 3 {
					for h := 0; h <= 20; h++ {
						lines := p.Draw(th, &s, w, h, false)
						if len(lines) != h {
							t.Fatalf("%s, sample %d: %d lines in %dx%d", p.Name, i, len(lines), w, h)
						}
						for _, l := range lines {
							if text.Width(l) != w {
								t.Fatalf("%s, sample %d: %d cells in %dx%d: %q", p.Name, i, text.Width(l), w, h, l)
							}
						}
					}
				}
			}
		}
	}
}

// TestUnknownIsSaid: what is not known is told in words, never as a zero.
func TestUnknownIsSaid(t *testing.T) {
	th := looks(t)[0]
	for _, p := range All() {
		got := ansi.Strip(strings.Join(p.Draw(th, &Sample{}, 60, 6, false), "\n"))
		if strings.ContainsAny(got, "0123456789") {
			t.Errorf("%s shows a figure it cannot know:\n%s", p.Name, got)
		}
	}
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		Count(41203): "41 203", UnitFor(0).Of(27.3e9): "27.3", UnitFor(2e6).Of(1.25e6): "1.2", UnitFor(9e5).Of(7e5): "700.0", Speed(0.97): "0.97", Speed(42.3): "42", Speed(0): "--", Speed(math.NaN()): "--",
		Span(0): "0s", Span(41 * time.Second): "41s", Span(20*time.Minute + 41*time.Second): "20m41s", Span(26*time.Hour + 5*time.Minute): "26h05m",
		Each(1020 * time.Millisecond): "1.02 s", Each(840 * time.Microsecond): "0.8 ms", Took(0): "0s", Took(time.Millisecond): "0.1s", Took(840 * time.Millisecond): "0.8s", Took(19*time.Minute + 41400*time.Millisecond): "19m41s",
		fitting(20, "p99 1.9 ms", "errors 0", "depth 3"): "p99 1.9 ms  errors 0", fitting(3, "p99 1.9 ms", "x"): "p99",
		Percent(0.934): "93%", Percent(math.NaN()): "--",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p := Prefetch{Hit: 64, InTime: 29, Late: 5, Missed: 2, Unused: 9}
	if p.Uses() != 100 || p.HitRate() != 0.93 {
		t.Errorf("%d uses, hit rate %v", p.Uses(), p.HitRate())
	}
}

// TestDrivesTellTheirTroubles: each drive has its share of the ceiling; with room for
// it p99, errors and mended blocks too; a temperature only where one is known.
func TestDrivesTellTheirTroubles(t *testing.T) {
	th := looks(t)[0]
	s := Sample{State: Decoding, Drives: []Drive{
		{Name: "d1", Now: 3.5e9, Ceiling: 7e9, History: []float64{3.5e9}, P99: 1900 * time.Microsecond, Depth: 32, Errors: 3, Retries: 5},
		{Name: "d2", Now: 2e9, Ceiling: 7e9, History: []float64{2e9}, P99: 250 * time.Millisecond, Depth: 4, Errors: 12000, Temperature: 81},
		{Name: "d3", Ceiling: 7e9, Lost: true},
	}}
	frame := func(w, h int) string {
		return ansi.Strip(strings.Join(drivesLines(th, &s, w, h), "\n"))
	}
	contains := func(what, got string, want ...string) {
		t.Helper()
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s lacks %q:\n%s", what, part, got)
			}
		}
	}
	contains("narrow", frame(24, 5), "3.5", "LOST")
	contains("narrow, its last line", frame(38, 5), "p99 250 ms  errors 12 003")
	contains("usual", frame(38, 5), "3.5  50%   --", "2.0  29%  81C")
	contains("wide", frame(60, 8), "GB/s  max  p99 ms  err mend temp", "3.5  50%     1.9    3    5   --", "2.0  29%     250 10k+    0  81C")
	for i := range s.Drives {
		s.Drives[i].Temperature = 0
	}
	contains("without sensors", frame(70, 8), "temperature not known")
	if got := frame(60, 8); strings.Contains(got, "temp ") && strings.Contains(got, "--C") {
		t.Errorf("a temperature nobody knows:\n%s", got)
	}
}

// TestPrefetchNamesTheWorstLayer once there is one.
func TestPrefetchNamesTheWorstLayer(t *testing.T) {
	th := looks(t)[0]
	s := Sample{Times: []time.Duration{time.Second}, Prefetch: Prefetch{Hit: 9, Late: 1, Stall: 61 * time.Millisecond}}
	last := func() string {
		lines := prefetchLines(th, &s, 38, 5)
		return lines[len(lines)-1]
	}
	if got := last(); got != "stall 61 ms/tok" {
		t.Errorf("%q", got)
	}
	s.Prefetch.WorstLayer, s.Prefetch.WorstStall = 58, 7200*time.Microsecond
	if got := last(); got != "stall 61 ms/tok  worst layer 58 7.2 ms" {
		t.Errorf("%q", got)
	}
	s.Prefetch.Stall, s.Prefetch.WorstStall = 1700*time.Millisecond, 26600*time.Microsecond
	if got := last(); got != "stall 1700 ms/tok  worst L58 26.6 ms" {
		t.Errorf("%q", got)
	}
}

// TestAtRestFiguresAreGrey: what no longer moves is drawn in one style, but for a lost
// drive and the queue; a model in memory says that nothing is read ahead.
func TestAtRestFiguresAreGrey(t *testing.T) {
	th := looks(t)[0]
	s := Sample{State: Decoding, Layer: 3, Layers: 8, Prefetch: Prefetch{Hit: 9, Late: 1}, Experts: Experts{Held: 1e9, Budget: 2e9}, Token: TokenTime{Took: time.Second, Read: 0.5, Math: 0.5},
		Times: []time.Duration{time.Second}, Drives: []Drive{{Name: "d1", Now: 1e9, Ceiling: 2e9, History: []float64{1e9}}, {Name: "d2", Lost: true}}}
	draw := func() (all string) {
		for _, p := range All() {
			all += strings.Join(p.Draw(th, &s, 42, 8, false), "\n") + "\n"
		}
		return all
	}
	if at := draw(); !strings.Contains(at, "1.0 GB/s  50% of ceiling") || strings.Contains(at, th.Frozen.Render("layer 3/8  read 50%  math 50%")) {
		t.Errorf("while working:\n%s", at)
	}
	s.State = Paused
	at := draw()
	for _, want := range []string{"- drives  idle -", lostMark(th), th.Frozen.Render("layer 3/8  read 50%  math 50%"), th.Frozen.Render("H cache 90%  p in time 0%"), "Questions you send"} {
		if !strings.Contains(at, want) {
			t.Errorf("at rest %q is missing:\n%s", want, at)
		}
	}
	s.Drives, s.Experts, s.Prefetch = nil, Experts{}, Prefetch{}
	if got := prefetchLines(th, &s, 38, 5); !strings.Contains(got[0], "all experts are in memory") {
		t.Errorf("%q", got)
	}
}
