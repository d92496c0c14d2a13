// Package frame is the way from the screen to the terminal: the writer that each
// frame passes, the escape sequences beside the frames, and the plain printer for
// those who use no frames.
//
// [Writer] goes to tea.WithOutput. bubbletea v1 hands it each frame in one Write;
// the writer wraps it in a synchronised update (DEC private mode 2026), so that a
// terminal shows whole frames, and puts the hardware cursor into the input's cell,
// where the windows of input methods open. Sequences that bubbletea sends besides
// frames go through WriteString and are left alone.
//
// [Copy], [Notify], [Progress], [Title] and [Bell] build sequences and write
// nothing. Whatever text they carry is cleaned: a title or a notice cannot end its
// sequence early and start another.
//
// [Plain] prints labelled lines one after the other, without moving the cursor,
// colours or boxes, for screen readers and terminals that cannot do more.
//
// What the package never does: it draws nothing, reads nothing from the terminal,
// and does not learn whether a sequence was understood. A terminal without mode
// 2026, OSC 52 or OSC 9;4 ignores them, as ECMA-48 asks; the caller names what was
// attempted, not what happened.
//
// Caveats: within screen and tmux the sequences for the outer terminal must be
// wrapped ([Passthrough]), and tmux must allow it. [Restore] is for the moment
// after a panic; in the normal way bubbletea restores the terminal itself.
package frame
