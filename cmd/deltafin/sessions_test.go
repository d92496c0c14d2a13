package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"deltafin/session"
	"deltafin/session/paths"
)

// home gives a test threads of its own.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(paths.HomeVar, dir)
	return dir
}

// done runs the program and wants it to end well.
func done(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := program(t, "", args...)
	if code != exitDone {
		t.Fatalf("%q: exit %d: %s", args, code, errs)
	}
	return out
}

// sessionsOf reads sessions --json.
func sessionsOf(t *testing.T, more ...string) (list []sessionSummary) {
	t.Helper()
	if err := json.Unmarshal([]byte(done(t, append([]string{"sessions", "--json"}, more...)...)), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

const fox = "Tell me a story about a fox."

// TestThreadFromTheCommandLine: a thread is begun, asked on, listed, shown,
// searched, renamed, put away and brought back.
func TestThreadFromTheCommandLine(t *testing.T) {
	home(t)
	if list := sessionsOf(t); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	plain := done(t, "ask", "--greedy", "--effort", "low", "hello")
	if _, err := os.Stat(filepath.Join(os.Getenv(paths.HomeVar), "data")); err == nil {
		t.Error("a question without a thread was kept")
	}
	code, out, errs := program(t, "", "ask", "--new", "--greedy", "--effort", "low", "hello")
	list := sessionsOf(t)
	if code != exitDone || out != plain || len(list) != 1 || list[0].Title != "hello" || list[0].Status != session.Done || list[0].Turns != 2 || list[0].Bytes == 0 {
		t.Fatalf("exit %d, %q, %+v", code, out, list)
	}
	id := list[0].ID.Short()
	if !strings.Contains(errs, "deltafin resume "+id) {
		t.Errorf("how to go on is not said: %s", errs)
	}
	// Settings of the thread go for the next question, which reads only itself.
	s := decode(t, done(t, "ask", "--last", "--json", "Name four fruits."))
	if !s.Sampling.Greedy || s.Counts.Reused == 0 || s.Thread == nil || s.Thread.ID != list[0].ID.String() || s.Thread.Status != session.Done {
		t.Errorf("%+v", s)
	}
	if out := done(t, "show", id[:4]); !strings.Contains(out, helloAnswer) || !strings.Contains(out, s.Text) || strings.Contains(out, "The user says hello.") {
		t.Errorf("show: %s", out)
	}
	if out := done(t, "show", "--thinking", id); !strings.Contains(out, "  | The user says hello.") {
		t.Errorf("show --thinking: %s", out)
	}
	if out := done(t, "show", "--md", id); !strings.Contains(out, helloAnswer) {
		t.Errorf("show --md: %s", out)
	}
	if out := done(t, "show", "--html", id); !strings.HasPrefix(strings.ToLower(out), "<!doctype html>") {
		t.Errorf("show --html: %.100s", out)
	}
	if out := done(t, "search", "demo model"); !strings.Contains(out, id) {
		t.Errorf("search: %s", out)
	}
	done(t, "rename", id, "About", "fruits")
	if out := done(t, "sessions"); !strings.Contains(out, "About fruits") {
		t.Errorf("sessions: %s", out)
	}
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(done(t, "show", "--json", id)), 0o600); err != nil {
		t.Fatal(err)
	}
	done(t, "sessions", "rm", id)
	if len(sessionsOf(t)) != 0 || len(sessionsOf(t, "--trash")) != 1 {
		t.Error("the thread is not in the trash")
	}
	done(t, "sessions", "restore", id)
	done(t, "sessions", "rm", id)
	if out := done(t, "gc", "--dry-run"); !strings.Contains(out, "would remove 1 threads") || len(sessionsOf(t, "--trash")) != 1 {
		t.Errorf("gc --dry-run: %s", out)
	}
	if out := done(t, "gc"); !strings.Contains(out, "removed 1 threads") || len(sessionsOf(t, "--trash")) != 0 {
		t.Errorf("gc: %s", out)
	}
	done(t, "sessions", "import", file)
	if list := sessionsOf(t); len(list) != 1 || list[0].Turns != 4 {
		t.Errorf("imported %+v", list)
	}
}

// TestBranchesFromTheCommandLine: fork, edit, undo, redo, another answer.
func TestBranchesFromTheCommandLine(t *testing.T) {
	home(t)
	done(t, "ask", "--new", "--temperature", "0.8", "--seed", "3", "--effort", "low", "-n", "40", "hello")
	id := sessionsOf(t)[0].ID.Short()
	if name := done(t, "fork", id, "--edit", "Name four fruits."); name != "main-2\n" {
		t.Errorf("edit made branch %q", name)
	}
	if out := done(t, "resume", id); out == "" {
		t.Error("the edited question was not answered")
	}
	done(t, "resume", "--last", "--regenerate")
	if list := sessionsOf(t); list[0].Branches != 3 || list[0].Turns != 5 || list[0].Branch != "main-3" {
		t.Errorf("%+v", list[0])
	}
	answer := done(t, "show", id)
	question := done(t, "undo", id)
	if redone := done(t, "redo", id); redone == question || done(t, "show", id) != answer {
		t.Errorf("undo gave %q, redo %q", question, redone)
	}
	turn := regexp.MustCompile(`(?m)^([0-9a-f]{7})  answer`).FindStringSubmatch(answer)[1]
	done(t, "fork", id+":"+turn, "--at", "5", "--name", "short")
	if out := done(t, "resume", id); !strings.Contains(answer, strings.TrimSpace(out)) {
		t.Errorf("an answer cut after five tokens goes on with %q, was\n%s", out, answer)
	}
	for _, bad := range [][]string{
		{"resume", id}, {"resume", id, "--regenerate", "again"}, {"resume"}, {"resume", "ffff"}, {"fork", id, "--at", "-1"}, {"fork", id, "--at", "1", "--edit", "x"},
		{"ask", "--new", "--last", "x"}, {"ask", "--branch", "x", "x"}, {"ask", "--raw", "--new", "x"}, {"ask", "--last", "--system", "x", "y"},
		{"show", id, "--md", "--json"}, {"show", "zz"}, {"rename", id}, {"search"}, {"queue", "add", "--seed", "1", "x"},
		{"queue", "move", "x", "0"}, {"queue", "add", "--at", "soon", "x"}, {"ask", "--new", "--snapshot-budget", "some", "x"},
	} {
		if code, _, errs := program(t, "", bad...); code != exitUsage {
			t.Errorf("%q: exit %d: %s", bad, code, errs)
		}
	}
}

// TestInterruptPausesAThread: exit 3, and the answer that goes on is the one
// that nothing would have interrupted.
func TestInterruptPausesAThread(t *testing.T) {
	home(t)
	args := []string{"ask", "--new", "--temperature", "0.8", "--seed", "3", "--effort", "low", fox}
	want := done(t, args...)
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupting{cancel: cancel}
	var errs bytes.Buffer
	code := run(ctx, args, streams{out: out, err: &errs, inTTY: true})
	if code != exitPaused || out.Len() == 0 || !strings.HasPrefix(want, strings.TrimSpace(out.String())) || !strings.Contains(errs.String(), "paused at token") {
		t.Fatalf("exit %d, %q: %s", code, out.String(), errs.String())
	}
	if list := sessionsOf(t); list[0].Status != session.Paused {
		t.Errorf("%+v", list[0])
	}
	if got := done(t, "resume", "--last"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	errs.Reset()
	if code := run(t.Context(), args, streams{out: closed{}, err: &errs, inTTY: true}); code != exitError || !strings.Contains(errs.String(), "writing the answer") {
		t.Errorf("nobody reads: exit %d: %s", code, errs.String())
	}
	if got := done(t, "resume", "--last"); got != want {
		t.Errorf("after nobody read: %q, want %q", got, want)
	}
}

// programVar makes the test binary the program itself, for signals and kills.
const programVar = "DELTAFIN_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVar) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestSignalsEndASavedAnswer: SIGTERM pauses within its five seconds, kill -9
// leaves what recovery tells; both go on to the same text.
func TestSignalsEndASavedAnswer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
	home(t)
	args := []string{"ask", "--new", "--temperature", "0.8", "--seed", "3", "--effort", "low", fox}
	want := done(t, args...)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
		cmd := exec.CommandContext(t.Context(), exe, args...)
		cmd.Env = append(os.Environ(), programVar+"=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 1)
		if _, err := out.Read(first); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		rest := new(bytes.Buffer)
		if _, err := rest.ReadFrom(out); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		waited := time.Since(begun).Milliseconds()
		code := cmd.ProcessState.ExitCode()
		if code == exitDone {
			t.Skip("the answer ended before the signal arrived")
		}
		if sig == syscall.SIGTERM && (code != exitPaused || !strings.Contains(errs.String(), "paused at token")) {
			t.Errorf("%v: exit %d after %d ms: %s", sig, code, waited, errs.String())
		}
		t.Logf("%v: gone after %d ms, exit %d", sig, waited, code)
		code, got, said := program(t, "", "resume", "--last")
		if code != exitDone || got != want {
			t.Errorf("%v: exit %d, %q, want %q", sig, code, got, want)
		}
		if sig == os.Kill && !strings.Contains(said, "recovered: the last run ended") {
			t.Errorf("what happened is not said: %s", said)
		}
	}
}

// TestQueueFromTheCommandLine: add, list, move, edit, rm, run.
func TestQueueFromTheCommandLine(t *testing.T) {
	home(t)
	add := func(args ...string) string {
		return strings.TrimSpace(done(t, append([]string{"queue", "add", "--greedy", "--effort", "low"}, args...)...))
	}
	first, second, third := add("hello"), add("--at", "+2h", fox), add("Name four fruits.")
	done(t, "queue", "move", third, "1")
	done(t, "queue", "edit", first, "hello", "there")
	var rows []queueSummary
	read := func() {
		t.Helper()
		rows = nil
		if err := json.Unmarshal([]byte(done(t, "queue", "list", "--json")), &rows); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if len(rows) != 3 || rows[0].ID.Short() != third || rows[1].Text != "hello there" || rows[2].Hold.IsZero() || rows[0].Tokens == 0 {
		t.Fatalf("%+v", rows)
	}
	if out := done(t, "queue", "list"); !strings.Contains(out, "unknown") || !strings.Contains(out, second) {
		t.Errorf("%s", out)
	}
	code, out, errs := program(t, "", "queue", "run")
	if code != exitDone || strings.Count(errs, "thought for") != 2 || out == "" || !strings.Contains(errs, "2 answered, 0 failed") {
		t.Errorf("exit %d %q: %s", code, out, errs)
	}
	read()
	if len(rows) != 1 || rows[0].ID.Short() != second || rows[0].Likely <= 0 {
		t.Errorf("%+v", rows)
	}
	done(t, "queue", "rm", second)
	if out := done(t, "queue", "list"); out != "" {
		t.Errorf("%s", out)
	}
	for s, want := range map[string]string{
		"22:30": "2026-01-31 22:30", "09:00": "2026-02-01 09:00", "tonight": "2026-01-31 22:00", "+90m": "2026-01-31 11:30", "2026-03-01 06:00": "2026-03-01 06:00",
	} {
		now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
		if at, err := parseHold(s, now); err != nil || at.Format("2006-01-02 15:04") != want {
			t.Errorf("%s is %v, want %s (%v)", s, at, want, err)
		}
	}
}

func TestPathsFollowTheHome(t *testing.T) {
	dir := home(t)
	var p map[string]string
	if err := json.Unmarshal([]byte(done(t, "paths", "--json")), &p); err != nil {
		t.Fatal(err)
	}
	if p["threads"] != filepath.Join(dir, "data", "threads.db") || p["snapshots"] != filepath.Join(dir, "state", "snapshots") {
		t.Errorf("%v", p)
	}
	if out := done(t, "paths"); strings.Count(out, dir) != 6 {
		t.Errorf("%s", out)
	}
}
