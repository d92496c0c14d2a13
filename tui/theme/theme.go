package theme

import "fmt"

// A Profile is how many colours the terminal has.
type Profile uint8

// The profiles, from none to all.
const (
	NoColour Profile = iota
	Colour16
	Colour256
	TrueColour
)

// String returns the profile's name.
func (p Profile) String() string {
	return [...]string{"no colour", "16 colours", "256 colours", "true colour"}[p&3]
}

// The names of the themes.
const (
	Dark  = "dark"
	Light = "light"
	Mono  = "mono"
)

// Names returns the themes in the order a user meets them.
func Names() []string { return []string{Dark, Light, Mono} }

// A Theme is what everything is drawn with. It is read only once made, so all
// goroutines may share it.
type Theme struct {
	// Name is Dark, Light or Mono.
	Name    string
	Profile Profile
	// Glyphs is the set to draw with.
	Glyphs *Glyphs

	// Text is running text, Dim what may be overlooked, Accent what has the
	// focus or may be pressed, Heading a title, Border the lines of boxes,
	// Selected a chosen row, Frozen values that no longer change.
	Text, Dim, Accent, Heading, Border, Selected, Frozen Style
	// Good, Warn and Bad colour a state that is also told in words.
	Good, Warn, Bad Style
	// You and Model head the turns of a thread; Thinking is the model's thoughts.
	You, Model, Thinking Style
	// Code is a code block, CodeSpan code within a line, Link a link's text, URL
	// its target, Quote quoted text.
	Code, CodeSpan, Link, URL, Quote Style
	// The parts of program text.
	Keyword, Function, Literal, Number, Comment, Operator Style
	// Series tells the parts of a strip apart, Heat goes from cold to hot.
	Series [4]Style
	Heat   [5]Style
}

// New returns the theme of a name for a profile. Without colours every theme is
// mono. It fails on a name it does not know, naming those it does.
func New(name string, p Profile, g *Glyphs) (*Theme, error) {
	var pal *palette
	switch name {
	case Dark:
		pal = &dark
	case Light:
		pal = &light
	case Mono:
		p = NoColour
	default:
		return nil, fmt.Errorf("no theme is called %q: choose dark, light or mono", name)
	}
	if p == NoColour {
		return mono(g), nil
	}
	return coloured(name, pal, p, g), nil
}
