package frame

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"deltafin/tui/text"
)

const (
	osc = "\x1b]"
	st  = "\x1b\\"
)

// Restore puts a terminal back into the state a shell expects, whatever state it
// is in: end of a synchronised update, colours off, cursor shown, mouse, focus
// reports and bracketed paste off, progress removed, and the main screen.
const Restore = syncEnd + "\x1b[0m" + showCur +
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l" +
	osc + "9;4;0" + st + "\x1b[?1049l\r"

// Bell is the bell.
const Bell = "\a"

// MaxCopy is the longest text, in bytes, that Copy takes: xterm and tmux drop
// longer sequences without a word (100,000 bytes of base64 with some room).
const MaxCopy = 74_000

// ErrTooLong means that a text is longer than the terminal's clipboard takes.
// Save it to a file instead.
var ErrTooLong = errors.New("too long for the terminal's clipboard")

// Copy returns the sequence that puts s, byte for byte, into the clipboard of the
// terminal the user sits at, also through ssh (OSC 52). The bytes travel as
// base64, so they need no cleaning. It fails with ErrTooLong beyond MaxCopy.
func Copy(s string) (string, error) {
	if len(s) > MaxCopy {
		return "", fmt.Errorf("%w: %d bytes, the most is %d", ErrTooLong, len(s), MaxCopy)
	}
	return osc + "52;c;" + base64.StdEncoding.EncodeToString([]byte(s)) + st, nil
}

// Notify returns the sequences that show a desktop notice, in the two forms
// terminals know (OSC 9: iTerm2, Windows Terminal, kitty; OSC 777: urxvt, foot,
// WezTerm). A terminal that knows both shows the notice twice, so choose: urxvt
// says whether it is of the second kind.
func Notify(title, body string, urxvt bool) string {
	title, body = payload(title), payload(body)
	if urxvt {
		// The fields are divided by semicolons; only the last may hold one.
		return osc + "777;notify;" + strings.ReplaceAll(title, ";", ",") + ";" + body + st
	}
	s := title
	if body != "" {
		s += ": " + body
	}
	// "9;4;..." would be progress, not a notice.
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		s = " " + s
	}
	return osc + "9;" + s + st
}

// WantsUrxvt says whether the terminal that the environment names takes OSC 777
// rather than OSC 9.
func WantsUrxvt(get func(string) string) bool {
	term := get("TERM")
	return strings.HasPrefix(term, "rxvt") || strings.HasPrefix(term, "foot") || get("VTE_VERSION") != ""
}

// A ProgressState is what the terminal shows in its tab or task bar.
type ProgressState int

// The states of OSC 9;4.
const (
	ProgressNone ProgressState = iota
	ProgressNormal
	ProgressError
	ProgressUnknown
	ProgressPaused
)

// Progress returns the sequence that shows percent (0 to 100, limited) in a state
// (OSC 9;4: Windows Terminal, ConEmu, Ghostty, WezTerm).
func Progress(s ProgressState, percent int) string {
	if s < ProgressNone || s > ProgressPaused {
		s = ProgressUnknown
	}
	seq := osc + "9;4;" + strconv.Itoa(int(s))
	if s != ProgressNone && s != ProgressUnknown {
		seq += ";" + strconv.Itoa(min(max(percent, 0), 100))
	}
	return seq + st
}

// Title returns the sequence that names the window.
func Title(s string) string { return osc + "2;" + payload(s) + st }

// Passthrough wraps a sequence so that tmux or screen hands it to the terminal
// outside, if the environment says the program runs within one.
func Passthrough(get func(string) string, seq string) string {
	switch {
	case seq == "":
		return ""
	case get("TMUX") != "":
		return "\x1bPtmux;" + strings.ReplaceAll(seq, "\x1b", "\x1b\x1b") + st
	case strings.HasPrefix(get("TERM"), "screen"):
		// screen cuts strings at 768 bytes; each piece is wrapped by itself. A
		// piece must not end between ESC and backslash, which would close it.
		var b strings.Builder
		seq = strings.TrimSuffix(seq, st) + "\a"
		for len(seq) > 0 {
			n := min(len(seq), 700)
			b.WriteString("\x1bP" + seq[:n] + st)
			seq = seq[n:]
		}
		return b.String()
	}
	return seq
}

// payload makes text fit to be carried in a sequence: one line, nothing that ends
// or starts a sequence, of a length that a title bar can show.
func payload(s string) string {
	return text.Elide(strings.TrimSpace(text.CleanLine(s)), 200, "...")
}
