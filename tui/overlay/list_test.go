package overlay

import (
	"testing"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

func TestListFiltersAndChooses(t *testing.T) {
	l := List{Title: "t", Items: []Item{{Label: "pause", Value: 1}, {Label: "export", Value: 2}, {Label: "expand", Value: 3}}}
	l.Key("", "ex")
	l.Key("down", "")
	if it, ok := l.Chosen(); !ok || it.Value != 3 {
		t.Errorf("chosen %v, %v", it, ok)
	}
	l.Key("down", "") // stops at the end
	if done, ok := l.Key("enter", ""); !done || !ok {
		t.Error("enter does not choose")
	}
	l.Key("", "zzz")
	if done, _ := l.Key("enter", ""); done {
		t.Error("enter chooses among nothing")
	}
	if done, ok := l.Key("esc", ""); !done || ok {
		t.Error("esc does not give up")
	}
}

func TestPromptNeedsText(t *testing.T) {
	l := List{Prompt: true}
	if done, ok := l.Key("enter", ""); !done || ok {
		t.Error("an empty line was taken")
	}
	l.Key("", "界x")
	l.Key("backspace", "")
	l.Key("backspace", "")
	l.Key("backspace", "")
	if l.Filter != "" {
		t.Errorf("left: %q", l.Filter)
	}
}

func TestDrawFits(t *testing.T) {
	th, err := theme.New(theme.Dark, theme.TrueColour, theme.Braille())
	if err != nil {
		t.Fatal(err)
	}
	for w := range 60 {
		for h := range 12 {
			l := List{Title: "标题", Items: []Item{{Label: "世界世界世界", Right: "ctrl+x"}, {Label: "\x1b[2J"}}}
			lines := l.Draw(th, w, h)
			if len(lines) != h {
				t.Fatalf("%d lines in %dx%d", len(lines), w, h)
			}
			for _, s := range lines {
				if text.Width(s) != w {
					t.Fatalf("%d cells in %dx%d: %q", text.Width(s), w, h, s)
				}
			}
		}
	}
}
