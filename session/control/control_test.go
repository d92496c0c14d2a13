package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/session"
)

// fakeJob is a Job whose status is set by hand.
type fakeJob struct {
	mu   sync.Mutex // guards below
	st   Status
	got  []Request
	fail error
	size int // of the sample
}

func (j *fakeJob) Status(sample bool) Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	st := j.st
	if sample {
		st.Sample, _ = json.Marshal(strings.Repeat("x", j.size))
	}
	return st
}

func (j *fakeJob) Do(_ context.Context, r Request) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.got = append(j.got, r)
	return j.fail
}

func (j *fakeJob) change(tokens int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.st.Change++
	j.st.Tokens = tokens
}

// folder is a folder whose name is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "c")
}

var me = session.Owner{PID: 4312, TTY: "pts/2", Host: "h", Started: time.Unix(1e9, 0)}

func serve(t *testing.T, dir string, job Job) *Server {
	t.Helper()
	own, err := Acquire(dir, me)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	s, err := own.Serve(job)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dial(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestStatusAndRequestsReachTheJob(t *testing.T) {
	dir := folder(t)
	job := &fakeJob{st: Status{State: "decoding", Thread: 7, Turn: 9, Tokens: 812, Rate: 0.97, Queue: 2}}
	serve(t, dir, job)
	c := dial(t, dir)
	if c.Owner().PID != me.PID || c.Owner().TTY != me.TTY {
		t.Errorf("owner %+v", c.Owner())
	}
	st, err := c.Status(t.Context())
	if err != nil || st.State != "decoding" || st.Thread != 7 || st.Turn != 9 || st.Tokens != 812 || st.Rate != 0.97 || st.Queue != 2 || st.Sample != nil {
		t.Errorf("%+v, %v", st, err)
	}
	want := []Request{{Do: Pause}, {Do: Resume}, {Do: Ask, Text: "Warum?\n冰", Thread: 7}, {Do: Enqueue, Text: "x"}, {Do: BreakIn, Text: "y"}, {Do: TakeOver}, {Do: Stop}}
	for _, r := range want {
		if err := c.Do(t.Context(), r); err != nil {
			t.Errorf("%s: %v", r.Do, err)
		}
	}
	for i, r := range want {
		if g := job.got[i]; g.Do != r.Do || g.Text != r.Text || g.Thread != r.Thread {
			t.Errorf("the job got %+v, want %+v", g, r)
		}
	}
	job.fail = errors.New("nothing is paused: ask a question first")
	var refused *RefusedError
	if err := c.Do(t.Context(), Request{Do: Resume}); !errors.As(err, &refused) || err.Error() != job.fail.Error() || refused.Do != Resume {
		t.Errorf("a refusal became %v", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("a refusal ended the conversation: %v", err)
	}
}

func TestBadRequestsAreAnsweredNotObeyed(t *testing.T) {
	dir := folder(t)
	job := &fakeJob{}
	serve(t, dir, job)
	c := dial(t, dir)
	for do, want := range map[Verb]string{"fly": `"fly"`, Ask: "needs a text"} {
		if err := c.Do(t.Context(), Request{Do: do, Text: " "}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", do, err)
		}
	}
	raw, err := net.Dial("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := io.WriteString(raw, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(raw) // the server hangs up
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.Contains(string(text), "not a message") {
		t.Errorf("%v: %q", err, text)
	}
	if len(job.got) != 0 {
		t.Errorf("the job got %+v", job.got)
	}
	if _, err := encode(Request{Do: Ask, Text: strings.Repeat("a", MaxLine)}); err == nil || !strings.Contains(err.Error(), "into a file") {
		t.Errorf("an endless question: %v", err)
	}
}

func TestOneOwner(t *testing.T) {
	dir := folder(t)
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without a folder: %v", err)
	}
	own, err := Acquire(dir, me)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Acquire(dir, session.Owner{PID: 1}); !errors.As(err, &held) || held.Owner.PID != me.PID || held.Owner.TTY != me.TTY {
		t.Fatalf("a second owner: %v", err)
	}
	if _, err := own.Serve(&fakeJob{}); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, socketName): 0o600 | os.ModeSocket, filepath.Join(dir, lockName): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
			}
		}
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the owner: %v", err)
	}
	own, err = Acquire(dir, me)
	if err != nil {
		t.Fatalf("the ownership was not given back: %v", err)
	}
	own.Close()
}

// TestMain can be an owner that waits to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONTROL_OWNER"); dir != "" {
		own, err := Acquire(dir, session.Owner{PID: os.Getpid()})
		if err == nil {
			_, err = own.Serve(&fakeJob{})
		}
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("ready\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestKilledOwnerLeavesNothingInTheWay(t *testing.T) {
	dir := folder(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CONTROL_OWNER="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	c := dial(t, dir)
	if c.Owner().PID != cmd.Process.Pid {
		t.Errorf("owner %+v", c.Owner())
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the conversation ended with %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, socketName)); err != nil {
		t.Fatal("the killed owner left no socket: this test tests nothing")
	}
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("dialling a dead owner: %v", err)
	}
	serve(t, dir, &fakeJob{st: Status{State: "idle"}})
	if st, err := dial(t, dir).Status(t.Context()); err != nil || st.State != "idle" {
		t.Errorf("the new owner: %+v, %v", st, err)
	}
}

func TestLongPathIsToldBeforeAnythingIsMade(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("long", 30))
	var path *PathError
	if _, err := Acquire(dir, me); !errors.As(err, &path) || !strings.Contains(err.Error(), "DELTAFIN_HOME") {
		t.Errorf("%v", err)
	}
	if _, err := Dial(t.Context(), dir); !errors.As(err, &path) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made")
	}
}

// pipes is a listener for clients within the process.
type pipes struct {
	c    chan net.Conn
	done chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.c:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { close(l.done); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (l *pipes) dial(t testing.TB) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	l.c <- far
	return near
}

func piped(job Job) (*pipes, *Server) {
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	return l, newServer(l, job, me)
}

// TestFollowersSeeChangesOnly: nothing is sent while nothing changes, and the end
// is told.
func TestFollowersSeeChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := &fakeJob{size: 10}
		l, s := piped(job)
		c, err := newClient(l.dial(t))
		if err != nil {
			t.Fatal(err)
		}
		var seen []int
		done := make(chan error)
		go func() {
			done <- c.Follow(t.Context(), time.Second, func(st Status) error {
				if len(st.Sample) == 0 {
					t.Error("no sample")
				}
				seen = append(seen, st.Tokens)
				return nil
			})
		}()
		for _, tokens := range []int{0, 5, 6} {
			if tokens > 0 {
				job.change(tokens)
			}
			<-time.After(time.Minute)
			synctest.Wait()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the owner's end is told as %v", err)
		}
		if len(seen) != 3 || seen[0] != 0 || seen[1] != 5 || seen[2] != 6 {
			t.Errorf("seen %v", seen)
		}
	})
}

// TestSlowClientHoldsNobodyUp: a client that subscribes and does not read is
// given up; the others and the job never notice.
func TestSlowClientHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := &fakeJob{size: 100 << 10}
		l, s := piped(job)
		slow := l.dial(t)
		if _, err := newClient(slow); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(slow, `{"id":1,"do":"subscribe"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		quick, err := newClient(l.dial(t))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			job.change(i)
			if st, err := quick.Status(t.Context()); err != nil || st.Tokens != i {
				t.Fatalf("%+v, %v", st, err)
			}
			<-time.After(50 * time.Millisecond)
		}
		<-time.After(writeTimeout)
		synctest.Wait()
		if n := s.Clients(); n != 1 {
			t.Errorf("%d clients, want only the quick one", n)
		}
		s.Close()
	})
}

func TestTooManyClientsAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := piped(&fakeJob{})
		for range maxClients {
			if _, err := newClient(l.dial(t)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := newClient(l.dial(t)); err == nil || !strings.Contains(err.Error(), "does not greet") {
			t.Errorf("one more: %v", err)
		}
		s.Close()
	})
}

func TestOtherVersionsAreNamed(t *testing.T) {
	near, far := net.Pipe()
	go io.WriteString(far, `{"deltafin_control":2,"owner":{"PID":17}}`+"\n")
	if _, err := newClient(near); err == nil || !strings.Contains(err.Error(), "protocol 2, this program 1") {
		t.Errorf("%v", err)
	}
	near, far = net.Pipe()
	go io.WriteString(far, "220 mail ready\n")
	if _, err := newClient(near); !errors.Is(err, ErrProtocol) {
		t.Errorf("%v", err)
	}
}
