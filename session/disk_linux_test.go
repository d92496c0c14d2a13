package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestASmallDisk fills a real file system and makes a real folder read-only, in
// a mount namespace of its own that ends with the child.
func TestASmallDisk(t *testing.T) {
	cmd := asChild(t, "small disk", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if cmd.ProcessState == nil || strings.HasPrefix(string(out), "skip") {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %q", err, out)
	}
}

func smallDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		os.Stdout.WriteString("skip: " + err.Error())
		return nil
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	id, err := fillAndGoOn(data, func() error { return os.Remove(ballast) })
	if err != nil {
		return err
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	if _, err := Open(background(), data, nil); !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("opening a read-only folder for writing: %w", err)
	}
	s, err := Open(background(), data, &Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("opening a read-only folder for reading: %w", err)
	}
	th, err := s.Load(background(), id, LoadOptions{Bodies: true})
	if err != nil || th.Turns[0].Status != Done {
		return fmt.Errorf("reading there: %v %w", th, err)
	}
	if _, err := s.Create(background(), "x", ""); !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("writing there: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	os.Stdout.WriteString("ok\n")
	return nil
}

// fillAndGoOn writes an answer until the disk is full, makes room and finishes.
func fillAndGoOn(dir string, room func() error) (ID, error) {
	ctx := background()
	s, err := Open(ctx, dir, &Options{Group: -1})
	if err != nil {
		return 0, err
	}
	info, err := s.Create(ctx, "x", "")
	if err != nil {
		return 0, err
	}
	w, err := s.Lock(ctx, info.ID)
	if err != nil {
		return 0, err
	}
	a, err := w.Begin(ctx, AnswerOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for ; err == nil; n++ {
		_, err = a.Append(ctx, Token{ID: int32(n), Channel: InAnswer, Text: strings.Repeat("x", 500)})
	}
	if !errors.Is(err, ErrFull) || a.Durable() != n-1 || n < 20 {
		return 0, fmt.Errorf("after %d tokens, %d durable: %w", n, a.Durable(), err)
	}
	if _, err := a.Sync(ctx); !errors.Is(err, ErrFull) {
		return 0, fmt.Errorf("still full: %w", err)
	}
	if err := room(); err != nil {
		return 0, err
	}
	if got, err := a.Sync(ctx); err != nil || got != n {
		return 0, fmt.Errorf("with room: %d of %d tokens, %w", got, n, err)
	}
	if err := a.Finish(ctx, Outcome{Status: Done}); err != nil {
		return 0, err
	}
	th, err := s.Load(ctx, info.ID, LoadOptions{Bodies: true})
	if err != nil || len(th.Turns[0].Body.Tokens) != n || len(th.Turns[0].Body.Text) != 500*n {
		return 0, fmt.Errorf("after all: %v %w", th, err)
	}
	return info.ID, errors.Join(w.Close(), s.Close())
}
