package tui

// The smallest window that shows text.
const (
	minWidth  = 40
	minHeight = 10
)

// A layout says what goes where, as a pure function of the window and of what the
// user asked for. Widths and heights are in cells; 0 means not shown.
type layout struct {
	w, h     int
	tiny     bool
	strip    int  // rows of figures below the text
	input    int  // rows of the input
	body     int  // rows of the text and of the columns beside it
	sidebar  int  // width of the column of threads
	panels   int  // width of the column of panels
	text     int  // width of the text
	instead  bool // the panels stand where the text would
	rules    bool // lines between the parts
	headRows int
	footRows int
}

// arrange lays out a window of w by h for an input of lines lines.
func arrange(w, h, lines, panels int) layout {
	l := layout{w: w, h: h, tiny: w < minWidth || h < minHeight, headRows: 1, footRows: 1}
	if l.tiny {
		return l
	}
	l.rules = h >= 20
	switch {
	case w >= 170 && h >= 45:
		l.sidebar, l.panels, l.input = 36, 60, 4
	case w >= 110 && h >= 24:
		l.panels, l.input = 42, 3
	case h >= 20:
		l.strip, l.input = 2, 2
	default:
		l.strip, l.input = 1, 1
	}
	switch panels {
	case panelsOff:
		l.panels, l.sidebar, l.strip = 0, 0, 0
	case panelsFull:
		// The strip says in two rows what the panels say: they get its rows.
		l.panels, l.sidebar, l.strip, l.instead = 0, 0, 0, true
	}
	l.input = min(max(l.input, lines), max(1, h/3))
	rows := l.headRows + l.footRows + l.input + l.strip
	if l.rules {
		rows += 2 // below the header, above the input
		if l.strip > 0 {
			rows++
		}
	}
	l.body = max(1, h-rows)
	l.text = w - l.sidebar - l.panels
	return l
}

// panelHeights divides h rows among the panels: those at the end leave first, the
// first stays longest.
func panelHeights(h int) []int {
	want := []int{8, 7, 8, 6, 7, 5} // drives, prefetch, experts, token, speed, queue
	least := []int{4, 6, 5, 4, 5, 4}
	// In this order panels leave: speed, queue, experts, prefetch, token.
	leave := []int{4, 5, 2, 1, 3}
	out := append([]int(nil), want...)
	sum := func() (n int) {
		for _, v := range out {
			n += v
		}
		return n
	}
	for i := len(out) - 1; i >= 0 && sum() > h; i-- {
		out[i] = max(least[i], out[i]-(sum()-h))
	}
	for _, i := range leave {
		if sum() <= h {
			break
		}
		out[i] = 0
	}
	// What is left over makes the two pictures larger that gain by it: the map of
	// the experts, and the drives' last ten minutes.
	left := max(0, h-sum())
	if out[2] > 0 {
		out[2] += left / 2
		left -= left / 2
	}
	out[0] = max(0, out[0]+left+min(0, h-sum()))
	return out
}
