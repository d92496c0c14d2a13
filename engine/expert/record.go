package expert

import (
	"bufio"
	"fmt"
	"io"
	"sync"
)

// A Recorder writes the choices of a router in the form that ReadTrace reads. It may
// be used from several goroutines. A write that fails ends the recording: Err says
// so, and what was written before is a valid trace.
type Recorder struct {
	mu    sync.Mutex // guards below
	w     *bufio.Writer
	err   error
	turns int
}

// NewRecorder starts a trace. about is a line on what is recorded, for people.
func NewRecorder(w io.Writer, about string) *Recorder {
	r := &Recorder{w: bufio.NewWriterSize(w, 1<<16)}
	_, r.err = fmt.Fprintf(r.w, "# routing trace of deltafin\n# %s\nturn,phase,step,layer,rank,expert\n", about)
	r.flush()
	return r
}

func (r *Recorder) flush() {
	if err := r.w.Flush(); r.err == nil {
		r.err = err
	}
}

// Turn numbers a call, for Add.
func (r *Recorder) Turn() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns++
	return r.turns - 1
}

// Add notes what one layer of a pass chose: experts [rows][k], in the router's
// order, of rows that are tokens step, step+1, ... of a turn. phase is 0 for a prompt
// and 1 for an answer. After each it is all with the system, so that a process that
// is killed leaves whole lines.
func (r *Recorder) Add(turn, phase, step, layer, rows int, experts []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || rows == 0 {
		return
	}
	k := len(experts) / rows
	for i, e := range experts {
		if _, err := fmt.Fprintf(r.w, "%d,%d,%d,%d,%d,%d\n", turn, phase, step+i/k, layer, i%k, e); err != nil {
			r.err = err
			return
		}
	}
	r.flush()
}

// Err is why the recording ended early, nil while it goes on.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return fmt.Errorf("recording the routes ended: %w", r.err)
	}
	return nil
}
