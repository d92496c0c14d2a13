package frame

import (
	"os"
	"strconv"
	"sync"
)

const (
	syncBegin = "\x1b[?2026h"
	syncEnd   = "\x1b[?2026l"
	showCur   = "\x1b[?25h"
	hideCur   = "\x1b[?25l"
)

// A File is what a terminal is written to: os.File, or a stand-in in tests.
type File interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	Close() error
	Fd() uintptr
}

var _ File = (*os.File)(nil)

// A Writer brackets frames. It has the methods of a file because bubbletea asks
// its output for the descriptor, to learn the window's size. Its methods may be
// called from any goroutine: the renderer writes from one of its own.
type Writer struct {
	file File

	mu sync.Mutex
	// guards below
	cur, shown cursor
	buf        []byte
}

// cursor is a cell, counted from 0, or no cell.
type cursor struct {
	x, y    int
	visible bool
}

// NewWriter returns a writer of frames to f. The cursor is hidden until SetCursor.
func NewWriter(f File) *Writer { return &Writer{file: f} }

// SetCursor says where the hardware cursor belongs: column x and row y counted
// from 0, or nowhere. It takes effect with the next frame, or with Place if no
// frame follows. It writes nothing and returns whether anything changed, so that
// an Update can call it.
func (w *Writer) SetCursor(x, y int, visible bool) bool {
	next := cursor{max(x, 0), max(y, 0), visible}
	if !visible {
		next = cursor{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cur = next
	return w.cur != w.shown
}

// Place moves the cursor without a frame, if it is not where SetCursor said. An
// arrow key moves the cursor and leaves the frame as it was: bubbletea does not
// write then.
func (w *Writer) Place() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cur == w.shown {
		return nil
	}
	w.buf = w.appendCursor(w.buf[:0])
	return w.flush()
}

// Write writes one frame: begin of update, hidden cursor, frame, cursor, end of
// update, in a single call to the file.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := append(w.buf[:0], syncBegin...)
	if w.shown.visible {
		// Terminals without mode 2026 would show it running over the frame.
		b = append(b, hideCur...)
		w.shown = cursor{}
	}
	b = append(b, p...)
	if w.cur.visible {
		b = w.appendCursor(b)
	}
	w.buf = append(b, syncEnd...)
	if err := w.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *Writer) appendCursor(b []byte) []byte {
	w.shown = w.cur
	if !w.cur.visible {
		return append(b, hideCur...)
	}
	b = append(b, "\x1b["...)
	b = strconv.AppendInt(b, int64(w.cur.y+1), 10)
	b = append(b, ';')
	b = strconv.AppendInt(b, int64(w.cur.x+1), 10)
	b = append(b, 'H')
	return append(b, showCur...)
}

func (w *Writer) flush() error {
	_, err := w.file.Write(w.buf)
	if cap(w.buf) > 1<<20 {
		w.buf = nil // one huge frame must not be kept for ever
	}
	return err
}

// leaveAlt leaves the alternate screen.
const leaveAlt = "\x1b[?1049l"

// WriteString passes a sequence through as it is: bubbletea uses it for
// everything but frames. The alternate screen is cleared before it is left: a
// multiplexer whose window grew meanwhile would take rows of it along.
func (w *Writer) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := []byte(s)
	if s == leaveAlt {
		b = []byte("\x1b[2J" + s)
	}
	if _, err := w.file.Write(b); err != nil {
		return 0, err
	}
	return len(s), nil
}

// Read reads from the file.
func (w *Writer) Read(p []byte) (int, error) { return w.file.Read(p) }

// Close does nothing: the file belongs to the caller.
func (w *Writer) Close() error { return nil }

// Fd returns the file's descriptor.
func (w *Writer) Fd() uintptr { return w.file.Fd() }
