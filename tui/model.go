package tui

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui/frame"
	"deltafin/tui/overlay"
	"deltafin/tui/pane"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// How often a Sample is read while an answer is under way. Without focus nobody
// looks closely; at rest only Backend.Changed wakes the screen.
const (
	tickBusy    = 160 * time.Millisecond // six times a second: each look costs the model its cores for a moment
	tickBlurred = time.Second
	estimateLag = 300 * time.Millisecond // after the last key
)

// longJob is how long an answer must have taken for its end to be announced.
const longJob = time.Minute

// Messages of the program's own.
type (
	tickMsg     struct{}
	changedMsg  struct{}
	detachMsg   struct{}
	leadMsg     int // the leader menu opens, unless a key has come
	estimateMsg int // the input has rested
	costMsg     struct {
		at   int
		cost Cost
		err  error
	}
	threadMsg struct {
		th  *session.Thread
		err error
	}
	threadsMsg struct {
		list []session.ThreadInfo
		show bool
		err  error
	}
	hitsMsg struct {
		query string
		hits  []session.Hit
		err   error
	}
	doneMsg struct {
		note string // said when it worked
		err  error
		read session.ID // thread to read again
	}
)

// What the overlay that is open is for.
type purpose int

const (
	nothing purpose = iota
	forCommand
	forHelp
	forThread
	forHit
	forSearch
	forRename
	forExport
	forTakeOver
)

// A model is everything the screen knows. It belongs to bubbletea's loop.
type model struct {
	ctx  context.Context
	o    Options
	t    *theme.Theme
	w    *frame.Writer
	keys []binding
	now  func() time.Time
	// wait is given every command that waits for the clock or for a change. Tests
	// leave those out and so know when the screen is idle.
	wait func(tea.Cmd) tea.Cmd

	width, height int
	sizing, sizes int // number of the size that has not rested yet, 0 for none, and of the newest
	s             Sample
	r             transcript
	in            input
	threads       []session.ThreadInfo
	hits          []session.Hit

	over     overlay.List
	what     purpose
	focus    string     // the pane with the focus, "" for the input
	zoom     bool       // it has the whole window
	picked   session.ID // question chosen in the queue, zero for the last
	choices  choices    // of paths behind an @
	listings int        // folders that are being read
	row      int        // thread chosen among the sessions, -1 for that shown
	panels   int        // of panelsAuto to panelsOff
	note     string     // one line below the text, until the next key
	away     string     // text of the card that was put away
	wanted   session.ID
	jump     session.ID // turn to scroll to once its thread is there
	fresh    bool       // the next question begins a thread
	lead     int        // > 0: Ctrl+X was pressed; its number
	leads    int
	menu     bool // the leader menu is shown
	ticking  bool // the clock wakes the screen
	watching bool // a change does
	blurred  bool
	frozen   string // the frame that stands still
	drawn    string // the newest frame, "" if something has changed since
	drawnAt  time.Duration
	mouse    bool
	confirm  bool // Ctrl+S once more breaks in
	leaving  bool // Ctrl+C once more quits
	edits    int
	cost     *costMsg
	percent  int // last shown in the window's tab
	end      error
}

// The panels: as the size allows, the whole screen, or none.
const (
	panelsAuto = iota
	panelsFull
	panelsOff
)

func newModel(ctx context.Context, o Options, w *frame.Writer) *model {
	m := &model{ctx: ctx, o: o, t: o.Theme, w: w, keys: keysFor(&o), now: o.Now, percent: -1, row: -1, wait: func(c tea.Cmd) tea.Cmd { return c }}
	if m.now == nil {
		m.now = time.Now
	}
	m.r.t = o.Theme
	o.Backend.Snapshot(&m.s)
	return m
}

// Init reads the threads and begins to watch.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.readThreads(false), m.take())
}

// watch waits for the backend's next change while nothing runs.
func (m *model) watch(changed <-chan struct{}) tea.Cmd {
	m.watching = true
	return m.wait(func() tea.Msg {
		select {
		case <-changed:
			return changedMsg{}
		case <-m.ctx.Done():
			return nil
		}
	})
}

// tick sets the next reading while an answer is under way.
func (m *model) tick() tea.Cmd {
	d := tickBusy
	if m.blurred {
		d = tickBlurred
	}
	m.ticking = true
	return m.wait(tea.Tick(d, func(time.Time) tea.Msg { return tickMsg{} }))
}

// take reads a Sample and does what follows from it. While the model works the
// clock asks for the next one: hundreds of changes a second cost ten frames. At
// rest a change does, asked for before the Sample is read so that none is missed.
func (m *model) take() tea.Cmd {
	changed := m.o.Backend.Changed()
	busy, answers, began, thread := m.s.State.Busy(), m.s.Answers, m.s.Began, m.s.Thread
	m.o.Backend.Snapshot(&m.s)
	var cmds []tea.Cmd
	if m.s.Thread != 0 && m.r.thread == 0 && m.wanted == 0 && !m.fresh || m.fresh && m.s.Thread != 0 && m.s.Began != began {
		m.fresh = false
		cmds = append(cmds, m.readThread(m.s.Thread))
	}
	if m.s.ReadOnly && thread != 0 && m.s.Thread != thread && thread == m.r.thread { // who watches goes along
		m.r = transcript{t: m.t, width: m.r.width, open: m.r.open}
		cmds = append(cmds, m.readThread(m.s.Thread))
	}
	if m.s.Began != began || m.s.Thread != thread {
		m.elsewhere()
	}
	if m.r.follow(&m.s) || m.s.Answers != answers && m.r.thread == m.s.Thread && m.r.thread != 0 {
		cmds = append(cmds, m.readThread(m.s.Thread), m.readThreads(false))
	}
	if busy && !m.s.State.Busy() {
		m.announce()
	}
	m.progress()
	switch working := m.s.State.Busy() || m.s.State == pane.Loading; {
	case working && !m.ticking:
		cmds = append(cmds, m.tick())
	case !working && !m.watching:
		cmds = append(cmds, m.watch(changed))
	}
	return tea.Batch(cmds...)
}

// elsewhere says that the answer that has begun is not in the thread on the screen,
// which stays: somebody may be reading it.
func (m *model) elsewhere() {
	if m.r.thread == 0 || m.s.Thread == 0 || m.s.Thread == m.r.thread || m.fresh {
		return
	}
	what := "an answer of " + m.s.Thread.Short()
	if q, _, _ := strings.Cut(m.s.Question, "\n"); q != "" {
		what = fmt.Sprintf("%q", text.Elide(text.CleanLine(q), 40, m.t.Glyphs.Ellipsis))
	}
	m.note = "the model now works on " + what + ", in another thread; f3 opens it"
}

// announce tells a user who looks elsewhere that a long answer has ended.
func (m *model) announce() {
	if !m.blurred || m.s.Began.IsZero() || m.now().Sub(m.s.Began) < longJob {
		return
	}
	m.emit(frame.Bell + frame.Notify("deltafin", verb(&m.s)+": "+m.r.title, m.o.Environ != nil && frame.WantsUrxvt(m.o.Environ)))
}

// progress shows in the terminal's tab how far the work is.
func (m *model) progress() {
	percent, state := 0, frame.ProgressNone
	switch {
	case m.s.State == pane.Prefill:
		percent, state = int(100*m.s.Reading.Share), frame.ProgressNormal
	case m.s.State == pane.Loading:
		percent, state = int(100*m.s.Loading.Share), frame.ProgressNormal
	case m.s.State == pane.Paused:
		state = frame.ProgressPaused
	case m.s.State == pane.Stopped:
		state = frame.ProgressError
	case m.s.State.Busy():
		state = frame.ProgressUnknown
	}
	if key := int(state)*1000 + percent; key != m.percent {
		m.percent = key
		m.emit(frame.Progress(state, percent))
	}
}

// emit writes a sequence beside the frames. Whether a terminal takes it nobody
// can know, so an error tells nothing new: the next frame meets it too.
func (m *model) emit(seq string) {
	if m.w == nil {
		return
	}
	if m.o.Environ != nil {
		seq = frame.Passthrough(m.o.Environ, seq)
	}
	_, _ = io.WriteString(m.w, seq)
}

// Update takes a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	was, busy, began := m.s.Change, m.s.State.Busy(), m.s.Began
	cmd := m.update(msg)
	if (m.note == notePausing || m.note == noteBreaking) && (m.s.State.Busy() != busy || m.s.Began != began) {
		m.note = ""
	}
	m.narrow()
	m.refocus()
	m.place()
	// bubbletea asks for a frame after every message, a tick that found nothing new too.
	if _, tick := msg.(tickMsg); !tick || m.s.Change != was || m.elapsed() != m.drawnAt {
		m.drawn = ""
	}
	return m, cmd
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		return m.resize(msg.Width, msg.Height)
	case settledMsg:
		m.settled(int(msg))
	case tea.KeyMsg:
		return m.key(msg)
	case tea.MouseMsg:
		switch msg.Button {
		case tea.MouseButtonWheelUp:
			m.r.scroll(-3, m.textRows())
		case tea.MouseButtonWheelDown:
			m.r.scroll(3, m.textRows())
		}
	case tea.FocusMsg:
		m.blurred = false
	case tea.BlurMsg:
		m.blurred = true
	case tickMsg:
		m.ticking = false
		return m.take()
	case changedMsg:
		m.watching = false
		if !m.ticking { // else the tick reads it
			return m.take()
		}
	case detachMsg:
		return m.detach()
	case leadMsg:
		m.menu = m.lead == int(msg)
	case estimateMsg:
		return m.estimate(int(msg))
	case costMsg:
		if msg.at == m.edits {
			m.cost = &msg
		}
	case pathsMsg:
		return m.listed(msg)
	case draftMsg:
		return m.drafted(msg)
	case editedMsg:
		return m.reread(msg)
	case editorMsg:
		return m.written(msg)
	default:
		return m.answered(msg)
	}
	return nil
}

// answered takes what the backend said.
func (m *model) answered(msg tea.Msg) tea.Cmd {
	var err error
	switch msg := msg.(type) {
	case threadMsg:
		if err = msg.err; err == nil {
			if msg.th.ID != m.wanted {
				return nil // the user has moved on meanwhile
			}
			m.r.set(msg.th)
			m.r.follow(&m.s)
			m.land(msg.th)
		}
	case threadsMsg:
		if err = msg.err; err == nil {
			m.threads = msg.list
			if msg.show {
				m.showThreads()
			}
		}
	case hitsMsg:
		if err = msg.err; err == nil {
			m.showHits(msg.query, msg.hits)
		}
	case doneMsg:
		if err = msg.err; err == nil {
			m.note = msg.note
			var cmd tea.Cmd
			if msg.read != 0 {
				cmd = m.readThread(msg.read)
			}
			return tea.Batch(m.take(), cmd, m.readThreads(false))
		}
	}
	if err != nil {
		m.note = strings.TrimSpace(err.Error())
	}
	return nil
}

func (m *model) readThread(id session.ID) tea.Cmd {
	m.wanted = id
	return func() tea.Msg {
		th, err := m.o.Backend.Thread(m.ctx, id)
		return threadMsg{th, err}
	}
}

func (m *model) readThreads(show bool) tea.Cmd {
	return func() tea.Msg {
		list, err := m.o.Backend.Threads(m.ctx, "")
		return threadsMsg{list, show, err}
	}
}

// ask hands a wish to the backend and says note when it was taken down.
func (m *model) ask(note string, read session.ID, do func(context.Context) error) tea.Cmd {
	return func() tea.Msg { return doneMsg{note, do(m.ctx), read} }
}
