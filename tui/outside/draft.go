package outside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// MaxText is the longest text, in bytes, that Text reads: what the input can lay
// out at every key.
const MaxText = 256 << 10

// endGrace is how long an editor has to save its state when it is asked to end.
const endGrace = 2 * time.Second

// A Draft is a text in a temporary file, to be edited by another program.
type Draft struct {
	// Path is the file.
	Path   string
	args   []string // of the editor
	before string
}

// NewDraft writes a text into a file of its own that only the user can read, for an
// editor: a program and its arguments, see Find.
func NewDraft(editor, text string) (*Draft, error) {
	args, err := Find(editor)
	if err != nil {
		return nil, fmt.Errorf("the editor: %w", err)
	}
	f, err := os.CreateTemp("", "deltafin-*.md") // 0600
	if err != nil {
		return nil, fmt.Errorf("making a file for the editor: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the text for the editor: %w", err), os.Remove(f.Name()))
	}
	return &Draft{Path: f.Name(), args: args, before: text}, nil
}

// Name is the editor, for messages.
func (d *Draft) Name() string { return filepath.Base(d.args[0]) }

// Before is the text that was written.
func (d *Draft) Before() string { return d.before }

// Command is the editor on the file. When ctx ends it is asked to end, so that it
// can put its own recovery file away.
func (d *Draft) Command(ctx context.Context) *exec.Cmd {
	c := exec.CommandContext(ctx, d.args[0], append(d.args[1:len(d.args):len(d.args)], d.Path)...)
	c.WaitDelay = endGrace
	c.Cancel = func() error {
		if c.Process.Signal(syscall.SIGTERM) != nil { // unknown to the system, or gone
			return c.Process.Kill()
		}
		return nil
	}
	return c
}

// Text reads the file. changed is false if it holds what was written. Line breaks
// become LF, and the one that editors put at the end is taken off. It fails on a
// file that is gone, longer than MaxText, or not text in UTF-8.
func (d *Draft) Text() (text string, changed bool, err error) {
	info, err := os.Stat(d.Path)
	if err != nil {
		return "", false, err
	}
	if info.Size() > MaxText {
		return "", true, fmt.Errorf("the text has %d bytes, the input takes %d: attach the file with @%s", info.Size(), MaxText, d.Path)
	}
	data, err := os.ReadFile(d.Path)
	if err != nil {
		return "", false, err
	}
	if text = string(data); text == d.before {
		return text, false, nil
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", true, fmt.Errorf("%s is not text in UTF-8", d.Path)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !strings.HasSuffix(d.before, "\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, text != d.before, nil
}

// Remove deletes the file.
func (d *Draft) Remove() error { return os.Remove(d.Path) }
