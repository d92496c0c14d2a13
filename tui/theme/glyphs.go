package theme

// Glyphs is a set of characters to draw with. Every string is one cell.
type Glyphs struct {
	// Name is "braille", "block" or "ascii".
	Name string
	// Horizontal and Vertical lines, corners (top left first), and tees named
	// after the side their stem points to.
	Horizontal, Vertical                       string
	TopLeft, TopRight, BottomLeft, BottomRight string
	TeeRight, TeeLeft, TeeDown, TeeUp, Cross   string
	// Steps are the heights of one cell from low to high, for sparklines.
	Steps []string
	// Eighths are the widths of one cell from narrow to full, for gauges; the
	// last is the full cell. Empty is the rest of a gauge.
	Eighths []string
	Empty   string
	// Shades go from nothing to everything, for heat maps.
	Shades []string
	// Dots says that braille cells may be used: 2 by 4 dots a cell.
	Dots bool
	// Ellipsis marks a cut, Bullet a list item, Quote the edge of a quotation,
	// Checked and Unchecked a task, Folded and Unfolded what can be opened, Mark
	// the chosen row, Cursor the end of a text that still grows, Attach a file,
	// Down more below, Dot the separator of short facts.
	Ellipsis, Bullet, Quote, Checked, Unchecked string
	Folded, Unfolded, Mark, Cursor, Attach      string
	Down, Up, Dot                               string
}

// Braille returns the richest set: box lines, eighths, and plots of braille dots.
func Braille() *Glyphs {
	g := Block()
	g.Name, g.Dots = "braille", true
	return g
}

// Block returns the set without braille, which many fonts and the Linux console
// lack.
func Block() *Glyphs {
	return &Glyphs{
		Name:       "block",
		Horizontal: "─", Vertical: "│",
		TopLeft: "┌", TopRight: "┐", BottomLeft: "└", BottomRight: "┘",
		TeeRight: "├", TeeLeft: "┤", TeeDown: "┬", TeeUp: "┴", Cross: "┼",
		Steps:    []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Eighths:  []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"},
		Empty:    "·",
		Shades:   []string{" ", "░", "▒", "▓", "█"},
		Ellipsis: "…", Bullet: "•", Quote: "│", Checked: "✓", Unchecked: "○",
		Folded: "▸", Unfolded: "▾", Mark: "›", Cursor: "▏", Attach: "@",
		Down: "↓", Up: "↑", Dot: "·",
	}
}

// ASCII returns the set for terminals and locales without UTF-8, and for golden
// files.
func ASCII() *Glyphs {
	return &Glyphs{
		Name:       "ascii",
		Horizontal: "-", Vertical: "|",
		TopLeft: "+", TopRight: "+", BottomLeft: "+", BottomRight: "+",
		TeeRight: "+", TeeLeft: "+", TeeDown: "+", TeeUp: "+", Cross: "+",
		Steps:    []string{".", ":", "-", "=", "+", "*", "#", "%"},
		Eighths:  []string{"#"},
		Empty:    ".",
		Shades:   []string{" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"},
		Ellipsis: "~", Bullet: "-", Quote: "|", Checked: "x", Unchecked: "o",
		Folded: ">", Unfolded: "v", Mark: ">", Cursor: "_", Attach: "@",
		Down: "v", Up: "^", Dot: "|",
	}
}
