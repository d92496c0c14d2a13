package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deltafin/engine"
	"deltafin/session"
)

// TestAFullDisk runs answers on a real file system that becomes full at many
// different moments, in a mount namespace of its own that ends with the child.
func TestAFullDisk(t *testing.T) {
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), exe, t.TempDir())
	cmd.Env = append(os.Environ(), childVar+"=small disk")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil || strings.HasPrefix(string(out), "skip") {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Errorf("%v: %q", err, out)
	}
}

// smallDisk is the child of TestAFullDisk.
func smallDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		os.Stdout.WriteString("skip: " + err.Error())
		return nil
	}
	d := &disk{dir: dir, at: map[string]int{}}
	e, err := engine.Open(context.Background(), engine.Options{Threads: 1})
	if err != nil {
		return err
	}
	d.e = e
	if d.want, err = d.answer("whole", 0); err != nil {
		return fmt.Errorf("with room: %w", err)
	}
	for room := 20 << 10; room < 1000<<10; room += 80 << 10 {
		got, err := d.answer(fmt.Sprint("room", room), room)
		if err != nil {
			return fmt.Errorf("with room for %d bytes: %w", room, err)
		}
		if !slices.Equal(got, d.want) {
			return fmt.Errorf("with room for %d bytes: tokens %v, want %v", room, got, d.want)
		}
	}
	fmt.Fprintf(os.Stdout, "full at %v\n", d.at)
	for _, must := range []string{"question", "token"} {
		if d.at[must] == 0 {
			return fmt.Errorf("the disk never became full at a %s: %v", must, d.at)
		}
	}
	if err := d.readOnly(); err != nil {
		return err
	}
	os.Stdout.WriteString("ok\n")
	return nil
}

// A disk is one on which answers are written until it is full.
type disk struct {
	dir  string
	e    *engine.Engine
	want []int32
	at   map[string]int // how often it became full at what
}

// answer has a question answered in a new store, with room for so many bytes
// after it was opened (0: enough), and once that is used up makes room and goes
// on.
func (d *disk) answer(name string, room int) ([]int32, error) {
	ctx := context.Background()
	data := filepath.Join(d.dir, name)
	defer os.RemoveAll(data)
	s, err := session.Open(ctx, data, &session.Options{Group: -1})
	if err != nil {
		return nil, err
	}
	r, err := New(s, d.e, Options{Snapshots: filepath.Join(data, "snapshots")})
	if err != nil {
		return nil, err
	}
	info, err := s.Create(ctx, "", "")
	if err != nil {
		return nil, err
	}
	ballast := filepath.Join(d.dir, "ballast")
	if room > 0 || d.want != nil {
		if err := d.fill(ballast, room); err != nil {
			return nil, err
		}
	}
	var published []int32
	l := Listener{Token: func(t Token) {
		if t.Index == len(published) {
			published = append(published, t.ID)
		}
	}}
	for range 3 {
		w, err := s.Lock(ctx, info.ID)
		if err == nil {
			err = goOnDisk(ctx, r, w, l)
			if cerr := w.Close(); err == nil {
				err = cerr
			}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, session.ErrFull) {
			return nil, err
		}
		if err := d.full(ctx, s, info.ID, published); err != nil {
			return nil, err
		}
		if err := os.Remove(ballast); err != nil {
			return nil, err
		}
	}
	os.Remove(ballast)
	th, err := s.Load(ctx, info.ID, session.LoadOptions{Bodies: true})
	if err != nil {
		return nil, err
	}
	damage, err := s.Check(ctx)
	if err := errors.Join(append(damage, err, s.Close())...); err != nil {
		return nil, err
	}
	last := th.Turns[len(th.Turns)-1]
	if len(th.Turns) != 2 || last.Status != session.Done || !slices.Equal(published, last.Body.IDs()) {
		return nil, fmt.Errorf("%d turns, the last is %s with %d tokens, %d were published", len(th.Turns), last.Status, len(last.Body.Tokens), len(published))
	}
	return last.Body.IDs(), nil
}

// goOnDisk does what the thread needs.
func goOnDisk(ctx context.Context, r *Runner, w *session.Writer, l Listener) error {
	th, err := r.store.Load(ctx, w.Thread(), session.LoadOptions{})
	if err != nil {
		return err
	}
	set := r.Defaults()
	set.Temperature, set.TopP, set.Effort, set.MaxTokens = 0, 0, "low", 60
	how := How{Settings: set}
	switch len(th.Turns) {
	case 0:
		_, err = r.Ask(ctx, w, user("Tell me a story about a fox."), how, Request{}, l)
	case 1:
		_, err = r.Answer(ctx, w, how, Request{}, l)
	default:
		if th.Turns[1].Status == session.Done {
			return nil
		}
		_, err = r.Continue(ctx, w, 0, Request{}, l)
	}
	return err
}

// full notes where the disk became full, and looks whether all that was
// published is there.
func (d *disk) full(ctx context.Context, s *session.Store, id session.ID, published []int32) error {
	th, err := s.Load(ctx, id, session.LoadOptions{Bodies: true})
	if err != nil {
		return fmt.Errorf("reading from a full disk: %w", err)
	}
	switch n := len(th.Turns); {
	case n < 2:
		d.at["question"]++
		if len(published) > 0 {
			return fmt.Errorf("%d tokens published of no answer", len(published))
		}
	default:
		have := th.Turns[1].Body.IDs()
		if len(have) < len(published) || !slices.Equal(have[:len(published)], published) {
			return fmt.Errorf("%d tokens published, %d on the disk", len(published), len(have))
		}
		d.at["token"]++
	}
	return nil
}

// fill leaves room for so many bytes.
func (d *disk) fill(ballast string, room int) error {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return err
	}
	n := int(st.Bavail)*int(st.Bsize) - room
	return os.WriteFile(ballast, make([]byte, max(n, 0)), 0o600)
}

// readOnly: a folder that cannot be written is said at once; what is in it can
// be read.
func (d *disk) readOnly() error {
	data := filepath.Join(d.dir, "ro")
	ctx := context.Background()
	s, err := session.Open(ctx, data, nil)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := unix.Mount("", d.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	if _, err := session.Open(ctx, data, nil); !errors.Is(err, session.ErrReadOnly) {
		return fmt.Errorf("opening threads in a read-only folder: %w", err)
	}
	s, err = session.Open(ctx, data, &session.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	if _, err := New(s, d.e, Options{Snapshots: filepath.Join(data, "snapshots")}); err == nil {
		return errors.New("snapshots in a read-only folder were taken")
	}
	return s.Close()
}
