package chart_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"deltafin/tui/chart"
	"deltafin/tui/theme"
)

func themes(t *testing.T) []*theme.Theme {
	t.Helper()
	var out []*theme.Theme
	for _, g := range []*theme.Glyphs{theme.Braille(), theme.Block(), theme.ASCII()} {
		for _, name := range theme.Names() {
			th, err := theme.New(name, theme.Colour256, g)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, th)
		}
	}
	return out
}

// bare returns the ASCII set without colours.
func bare(t *testing.T) *theme.Theme { return themes(t)[8] }

var nan = math.NaN()

// odd are numbers that arithmetic trips over.
var odd = []float64{0, -1, nan, math.Inf(1), math.Inf(-1), 1e308, 1e308, 5e-324, 0.5, 1}

// TestEveryPictureHasItsSize: whatever the numbers, glyphs and colours.
func TestEveryPictureHasItsSize(t *testing.T) {
	for _, th := range themes(t) {
		parts := []chart.Part{}
		for _, v := range odd {
			parts = append(parts, chart.Part{Value: v, Letter: 'H', Style: th.Good})
		}
		for w := range 23 {
			lines := map[string]string{
				"empty": chart.Empty(th, "waiting\nfor the first read", w),
				"strip": chart.Strip(th, parts, w), "no strip": chart.Strip(th, nil, w),
			}
			for _, top := range append(odd, 28) {
				lines["spark"] = chart.Sparkline(th, odd, w, top)
				lines["short"] = chart.Sparkline(th, nil, w, top)
				lines["bar"] = chart.Bar(th, top, w)
				lines["heat"] = chart.HeatStrip(th, odd, w, top)
				for name, l := range lines {
					if n := ansi.StringWidth(l); n != w {
						t.Fatalf("%s %s: %s at top %g is %d cells, want %d: %q", th.Name, th.Glyphs.Name, name, top, n, w, l)
					}
				}
				for h := range 4 {
					for name, rows := range map[string][]string{
						"plot": chart.Plot(th, odd, w, h, top),
						"map":  chart.HeatMap(th, [][]float64{odd, nil, {1, nan}, odd[3:], odd}, w, h),
					} {
						if w > 0 && len(rows) != h {
							t.Fatalf("%s is %d rows, want %d", name, len(rows), h)
						}
						for _, l := range rows {
							if n := ansi.StringWidth(l); n != w {
								t.Fatalf("%s: row is %d cells, want %d: %q", name, n, w, l)
							}
						}
					}
				}
			}
		}
	}
}

func TestSparklineHasAFixedScale(t *testing.T) {
	th := bare(t)
	for _, c := range []struct {
		values []float64
		top    float64
		want   string
	}{
		{[]float64{0, 1, 4, 8}, 8, "   .=%"},
		{[]float64{0, 1, 4, 8}, 16, "   .:="},
		{[]float64{8, 99, 0.001, nan, 2}, 8, " %%. :"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8}, 8, "-=+*#%"},
		{nil, 8, "      "},
		{[]float64{1, 2}, 0, "      "},
	} {
		if got := chart.Sparkline(th, c.values, 6, c.top); got != c.want {
			t.Errorf("Sparkline(%v, top %g) = %q, want %q", c.values, c.top, got, c.want)
		}
	}
}

func TestBarShowsFirstAndLastStep(t *testing.T) {
	th := bare(t)
	for _, c := range []struct {
		f    float64
		want string
	}{{0, "...."}, {0.001, "#..."}, {0.5, "##.."}, {0.999, "###."}, {1, "####"}, {7, "####"}, {nan, "...."}} {
		if got := ansi.Strip(chart.Bar(th, c.f, 4)); got != c.want {
			t.Errorf("Bar(%g) = %q, want %q", c.f, got, c.want)
		}
	}
	block := themes(t)[5]
	if got := ansi.Strip(chart.Bar(block, 0.45, 4)); got != "█▊··" {
		t.Errorf("Bar(0.45) in eighths = %q", got)
	}
}

func TestStripDividesAllCells(t *testing.T) {
	th := bare(t)
	strip := func(values ...float64) string {
		var parts []chart.Part
		for i, v := range values {
			parts = append(parts, chart.Part{Value: v, Letter: rune("Hplw"[i])})
		}
		return ansi.Strip(chart.Strip(th, parts, 10))
	}
	for _, c := range []struct{ got, want string }{
		{strip(64, 29, 5, 2), "HHHHHpppl" + "w"},
		{strip(1, 1), "HHHHHppppp"},
		{strip(1000, 1, 0, 1), "HHHHHHHHpw"},
		{strip(0, 0), ".........."},
		{strip(0, 3), "pppppppppp"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPlotKeepsAShortStall(t *testing.T) {
	values := slices.Repeat([]float64{8}, 600)
	values[300] = 0
	for _, th := range themes(t) {
		smooth := chart.Plot(th, slices.Repeat([]float64{8}, 600), 30, 4, 8)
		if got := chart.Plot(th, values, 30, 4, 8); slices.Equal(got, smooth) {
			t.Errorf("%s: one stall of 600 samples is not seen", th.Glyphs.Name)
		}
	}
	got := chart.Plot(bare(t), []float64{2, 4, 8}, 4, 2, 8)
	if want := []string{"   %", " =%%"}; !slices.Equal(got, want) {
		t.Errorf("Plot = %q, want %q", got, want)
	}
	got = chart.Plot(themes(t)[0], []float64{0, 1, 2, 3}, 2, 1, 3)
	if want := []string{"⡠⠊"}; !slices.Equal(got, want) {
		t.Errorf("Plot of dots = %q, want %q", got, want)
	}
}

func TestHeatMapIsTheMean(t *testing.T) {
	th := bare(t)
	rows := [][]float64{{1, 1, 0, 0}, {1, 1, 0, 0}, {nan, 0.5, 0.1, 1}}
	got := chart.HeatMap(th, rows, 4, 4)
	for i := range got {
		got[i] = ansi.Strip(got[i])
	}
	if want := []string{"@@  ", "@@  ", " +.@", "    "}; !slices.Equal(got, want) {
		t.Errorf("HeatMap = %q, want %q", got, want)
	}
	if got := ansi.Strip(chart.HeatMap(th, rows[:2], 2, 1)[0]); got != "@ " {
		t.Errorf("HeatMap of two columns = %q", got)
	}
	if got := strings.TrimRight(ansi.Strip(chart.HeatStrip(th, []float64{0, 1, 9, 4.5}, 4, 9)), " "); got != " .@+" {
		t.Errorf("HeatStrip = %q", got)
	}
}

func BenchmarkPanelOfFourDrives(b *testing.B) {
	th, err := theme.New(theme.Dark, theme.TrueColour, theme.Braille())
	if err != nil {
		b.Fatal(err)
	}
	values := make([]float64, 60)
	for i := range values {
		values[i] = float64(i % 8)
	}
	for b.Loop() {
		for range 4 {
			chart.Sparkline(th, values, 40, 8)
		}
		chart.Plot(th, values, 60, 8, 8)
	}
}
