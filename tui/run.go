package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/frame"
	"deltafin/tui/theme"
	_ "deltafin/tui/theme/aterm" // answers for the terminal, see there
)

// Options are what the screen needs.
type Options struct {
	Backend Backend      // required
	Theme   *theme.Theme // required
	In      io.Reader    // required: the terminal
	Out     frame.File   // required: the terminal
	// Detach takes the screen away while the work goes on; Run then returns
	// ErrDetached. Nil for never.
	Detach <-chan struct{}
	// Save keeps a text that no clipboard takes and says where; nil if it cannot be
	// kept.
	Save func(text string) (where string, err error)
	// Look makes the theme of a name for this terminal, so that the user can change
	// it; nil if Theme is the only one.
	Look func(name string) (*theme.Theme, error)
	// TakeOver asks the process that this screen watches to hand the engine over; nil
	// if the engine is here.
	TakeOver func(ctx context.Context) error
	// Unsent is given what was typed and not sent when the screen has gone; nil drops
	// it.
	Unsent func(text string)
	// Environ is asked for the variables that say which terminal this is; nil for
	// none.
	Environ func(string) string
	// Now is the clock, time.Now by default.
	Now func() time.Time
}

// ErrDetached: the screen has gone, by Ctrl+X d or Options.Detach. The work should
// go on.
var ErrDetached = errors.New("detached")

// fps is how often the renderer may write. The program reads its Sample less often.
const fps = 20

// Run shows the screen until the user leaves. It returns nil when the user quits,
// ErrDetached when the work should go on, and the context's error when that ends. It
// pauses nothing by itself: what a nil means is the caller's to do. A panic in the
// screen restores the terminal and comes back as an error.
func Run(ctx context.Context, o Options) error {
	if o.Backend == nil || o.Theme == nil || o.In == nil || o.Out == nil {
		return errors.New("tui: Backend, Theme, In and Out are required")
	}
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := frame.NewWriter(o.Out)
	m := newModel(ctx, o, w)
	// The program is asked to quit when ctx ends. One that is killed by its context
	// leaves a goroutine behind that takes the next key from whoever reads the
	// terminal then.
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(w), tea.WithAltScreen(),
		tea.WithFPS(fps), tea.WithReportFocus(), tea.WithoutSignalHandler())
	// Ends with the program, by cancel; Send returns once the program has ended.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-o.Detach:
			p.Send(detachMsg{})
		case <-ctx.Done():
			p.Quit()
		}
	}()
	_, err := p.Run()
	cancel()
	<-gone
	_, werr := io.WriteString(w, frame.Restore)
	if left := m.in.full(); left != "" && o.Unsent != nil {
		o.Unsent(left)
	}
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the screen failed and was closed; the work is not affected: %w", err)
	case m.end != nil:
		return m.end
	case parent.Err() != nil:
		return context.Cause(parent)
	case err != nil:
		return fmt.Errorf("running the screen: %w", err)
	}
	return werr
}
