package session

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// childVar makes the test binary play the process that is killed.
const childVar = "DELTAFIN_SESSION_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childVar); role != "" {
		if err := child(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asChild runs the test binary in a role.
func asChild(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), childVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// killToken is the token at position i of the one answer that the killed runs
// write together.
func killToken(i int) Token {
	ch := InAnswer
	if i < 30 {
		ch = InThinking
	}
	return Token{ID: int32(i*7919) % 163840, Channel: ch, Text: fmt.Sprint("w", i, " ")}
}

// killed goes on with the answer, telling every durable token, until it is
// killed. Every so often it pauses and continues, so that the database is also
// killed while it folds.
func killed(dir string, thread ID, group string) error {
	ctx := background()
	opt := &Options{Group: -1}
	if group == "grouped" {
		opt = nil
	}
	s, err := Open(ctx, dir, opt)
	if err != nil {
		return err
	}
	w, err := s.Lock(ctx, thread)
	if err != nil {
		return err
	}
	tell := func(n int) { os.Stdout.WriteString(strconv.Itoa(n) + "\n") }
	opts := AnswerOptions{Seed: 1, Durable: tell}
	th, err := s.Load(ctx, thread, LoadOptions{})
	if err != nil {
		return err
	}
	a, err := w.Continue(ctx, th.Turns[1].ID, opts)
	if err != nil {
		return err
	}
	for i := a.Durable(); ; i++ {
		if _, err := a.Append(ctx, killToken(i)); err != nil {
			return err
		}
		if group == "grouped" && i%7 == 6 { // rather than wait for the time to pass
			if _, err := a.Sync(ctx); err != nil {
				return err
			}
		}
		if i%40 != 39 {
			continue
		}
		if err := a.Finish(ctx, Outcome{Status: Paused}); err != nil {
			return err
		}
		if a, err = w.Continue(ctx, a.Turn(), opts); err != nil {
			return err
		}
	}
}

// TestKilledWriters kills a process with kill -9 again and again while it
// writes one answer. After each the thread opens with every token that was
// called durable and, synced one by one, at most one beyond.
func TestKilledWriters(t *testing.T) {
	runs := rounds(6, 30, 1000)
	for _, group := range []string{"single", "grouped"} {
		t.Run(group, func(t *testing.T) {
			dir := t.TempDir()
			s := reopen(t, dir, nil)
			id, w := newThread(t, s)
			say(t, w, "?")
			a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{}))
			check(t, a.Finish(t.Context(), Outcome{Status: Paused}))
			check(t, w.Close())
			check(t, s.Close())
			r := rand.New(rand.NewPCG(31, 32))
			recovered, have := 0, 0
			for run := range runs / 2 {
				have = killOnce(t, r, dir, id, group, have, run, &recovered)
			}
			t.Logf("%d kills, %d in the middle of a run, %d tokens", runs/2, recovered, have)
			if recovered < runs/4 {
				t.Errorf("only %d of %d kills hit an open answer", recovered, runs/2)
			}
		})
	}
}

// killOnce runs the writer, kills it after a random number of tokens and looks
// at what it left. It returns how many tokens there are.
func killOnce(t *testing.T, r *rand.Rand, dir string, id ID, group string, had, run int, recovered *int) int {
	t.Helper()
	cmd := asChild(t, "killed", dir, id.String(), group)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(out)
	durable := had
	for left := 1 + r.IntN(30); lines.Scan(); left-- {
		n, err := strconv.Atoi(lines.Text())
		check(t, err)
		durable = n
		if left == 0 {
			check(t, cmd.Process.Kill()) // and go on reading what it told before
		}
	}
	err = cmd.Wait()
	if err == nil || !strings.Contains(err.Error(), "killed") && os.PathSeparator == '/' {
		t.Fatalf("the writer was not killed: %v", err)
	}

	s, err := Open(t.Context(), dir, nil)
	check(t, err)
	w, err := s.Lock(t.Context(), id)
	check(t, err)
	th := must[*Thread](t)(s.Load(t.Context(), id, LoadOptions{Bodies: true}))
	toks := th.Turns[1].Body.Tokens
	for i, tok := range toks {
		if tok != killToken(i) {
			t.Fatalf("run %d: token %d is %+v", run, i, tok)
		}
	}
	beyond := 1
	if group == "grouped" {
		beyond = len(toks) // of a group whose sync was not yet told
	}
	if len(toks) < durable || len(toks) > durable+beyond {
		t.Fatalf("run %d: %d tokens, %d were told", run, len(toks), durable)
	}
	if rec := w.Recovered(); rec != nil {
		*recovered++
		if rec.Tokens != len(toks) || rec.Dropped != 0 || rec.Damaged {
			t.Fatalf("run %d: recovered %+v, %d tokens", run, rec, len(toks))
		}
	}
	sound(t, s)
	check(t, w.Close())
	check(t, s.Close())
	return len(toks)
}
