package session

import (
	"bufio"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// holder locks a thread, says so, and waits for its input to end.
func holder(dir, thread string) error {
	id, err := parseID(thread)
	if err != nil {
		return err
	}
	s, err := Open(background(), dir, &Options{TTY: "pts/7"})
	if err != nil {
		return err
	}
	w, err := s.Lock(background(), id)
	if err != nil {
		return err
	}
	os.Stdout.WriteString("locked\n")
	io.Copy(io.Discard, os.Stdin)
	return errors.Join(w.Close(), s.Close())
}

// TestWritersInTwoProcesses: the second is told who the first is, and the lock
// of a killed process is free at once.
func TestWritersInTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	ctx := t.Context()
	info := must[ThreadInfo](t)(s.Create(ctx, "x", ""))
	for _, kill := range []bool{false, true} {
		cmd := asChild(t, "holder", dir, info.ID.String())
		in, err := cmd.StdinPipe()
		check(t, err)
		out, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
			t.Fatalf("%q %v", line, err)
		}
		_, err = s.Lock(ctx, info.ID)
		var locked *LockedError
		if !errors.As(err, &locked) || locked.Owner.PID != cmd.Process.Pid || locked.Owner.TTY != "pts/7" || time.Since(locked.Owner.Started) > time.Hour {
			t.Errorf("%v", err)
		}
		if o, held, err := s.Holder(ctx, info.ID); err != nil || !held || o.PID != cmd.Process.Pid {
			t.Errorf("holder %v %v %v", o, held, err)
		}
		// Reading, and writing elsewhere, goes on meanwhile.
		must[*Thread](t)(s.Load(ctx, info.ID, LoadOptions{Bodies: true}))
		newThread(t, s)
		if kill {
			check(t, cmd.Process.Kill())
			cmd.Wait()
		} else {
			check(t, in.Close())
			check(t, cmd.Wait())
		}
		w := must[*Writer](t)(s.Lock(ctx, info.ID))
		check(t, w.Close())
	}
}
