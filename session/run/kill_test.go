package run

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/session"
)

var kills = flag.Int("kills", 12, "how many processes TestKilledAnswers kills")

// childVar makes the test binary play the process that is killed.
const childVar = "DELTAFIN_RUN_CHILD"

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

func child(role string, args []string) error {
	switch role {
	case "killed":
		return killed(args[0], args[1], args[2], args[3])
	case "small disk":
		return smallDisk(args[0])
	}
	return fmt.Errorf("no role %q", role)
}

// A ticker is a clock that goes on by a minute whenever it is read, so that
// snapshots at intervals come every few tokens.
type ticker struct{ t time.Time }

func (c *ticker) now() time.Time {
	c.t = c.t.Add(time.Minute)
	return c.t
}

const killSystem = "You are a friendly assistant. You answer in whole sentences, you never hurry, and you keep to what is known."

func killQuestion(seed int) string {
	return []string{"Tell me a story about a fox.", "Tell me a story about a bear.", "Name four fruits.", "Tell me a story about a king."}[seed%4]
}

// killHow gives the settings of the answer; they are stored with its turn.
func killHow(r *Runner, seed int) How {
	set := r.Defaults()
	set.Temperature, set.Effort, set.MaxTokens = 0.7, "low", 150
	return How{Settings: set, Seed: uint64(seed)}
}

// killed goes on with a thread, telling all it does, until its answer is
// complete or it is killed.
func killed(dir, thread, group, seedText string) error {
	ctx := context.Background()
	var id session.ID
	if err := id.UnmarshalText([]byte(thread)); err != nil {
		return err
	}
	seed, err := strconv.Atoi(seedText)
	if err != nil {
		return err
	}
	opt := &session.Options{Group: -1}
	if group == "grouped" {
		opt = nil
	}
	s, err := session.Open(ctx, filepath.Join(dir, "data"), opt)
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Options{Threads: 1, PrefillRows: 16})
	if err != nil {
		return err
	}
	clock := &ticker{time.Unix(1e9, 0)}
	r, err := New(s, e, Options{Snapshots: filepath.Join(dir, "snapshots"), LongPrefill: 16, Interval: 9 * time.Minute, Now: clock.now})
	if err != nil {
		return err
	}
	tell := func(what string, n int) { os.Stdout.WriteString(what + " " + strconv.Itoa(n) + "\n") }
	r.picked = func(i int) { tell("picked", i+1) }
	w, err := s.Lock(ctx, id)
	if err != nil {
		return err
	}
	l := Listener{
		Prefill: func(p engine.Progress) {
			if p.Layer == p.Layers/2 {
				tell("prefill", p.Done)
			}
		},
		Token:  func(t Token) { tell("token", t.Index+1) },
		Stage:  func(st Stage) { tell(st.Kind, st.Tokens) },
		Notice: func(n Notice) { tell("notice:"+n.Kind, 0) },
	}
	if err := goOn(ctx, r, w, seed, l); err != nil {
		return err
	}
	if err := errors.Join(w.Close(), s.Close()); err != nil {
		return err
	}
	tell("done", 0)
	return nil
}

// goOn does what a thread needs in whatever state it was left.
func goOn(ctx context.Context, r *Runner, w *session.Writer, seed int, l Listener) error {
	th, err := r.store.Load(ctx, w.Thread(), session.LoadOptions{})
	if err != nil {
		return err
	}
	leaf := th.Turn(th.Branches[0].Leaf)
	if leaf == nil {
		if _, err := w.Append(ctx, "", session.NewTurn{Role: session.System, Text: killSystem}); err != nil {
			return err
		}
	}
	switch {
	case leaf == nil || leaf.Role == session.System:
		_, err = r.Ask(ctx, w, user(killQuestion(seed)), killHow(r, seed), Request{}, l)
	case leaf.Role == session.User:
		_, err = r.Answer(ctx, w, killHow(r, seed), Request{}, l)
	case leaf.Status != session.Done:
		_, err = r.Continue(ctx, w, 0, Request{}, l)
	}
	return err
}

// TestKilledAnswers kills processes with kill -9 at random moments while they
// answer: as they read the prompt, pick a token, write it to the database, write
// or read a snapshot. Every answer, however often its processes were killed,
// ends with the text of a run that nothing disturbed. After each kill the
// database passes its checks and at most the token in flight is missing.
func TestKilledAnswers(t *testing.T) {
	b := newBench(t, Options{})
	k := &killer{b: b, t: t, r: rand.New(rand.NewPCG(41, 42)), at: map[string]int{}}
	for k.kills < *kills {
		k.answer()
	}
	t.Logf("%d kills of %d processes, %d answers: %v; %d kills left an open answer, %d of them lost the token in flight",
		k.kills, k.runs, k.answers, k.at, k.recovered, k.lost)
	if k.recovered < *kills/3 {
		t.Errorf("only %d of %d kills hit an open answer", k.recovered, k.kills)
	}
}

type killer struct {
	b       *bench
	t       *testing.T
	r       *rand.Rand
	kills   int
	runs    int
	answers int
	at      map[string]int // what the child had told last when it was killed

	recovered, lost int
}

// answer has one answer written by processes of which most are killed.
func (k *killer) answer() {
	t, seed := k.t, k.answers
	k.answers++
	group := "single"
	if seed%4 == 3 {
		group = "grouped"
	}
	id := k.b.thread()
	want := k.undisturbed(seed)
	for most := 6; ; most-- { // then it may end
		told, done := k.run(id, group, seed, most > 0)
		k.inspect(id, group, want, told)
		if done {
			break
		}
	}
	th := must[*session.Thread](t)(k.b.s.Load(t.Context(), id, session.LoadOptions{Bodies: true}))
	if last := th.Turns[len(th.Turns)-1]; last.Status != session.Done || !slices.Equal(last.Body.IDs(), want) || len(th.Turns) != 3 {
		t.Fatalf("answer %d (%s): %+v\nwant %v", seed, group, last, want)
	}
}

// undisturbed gives the ids of the answer as the engine alone makes it.
func (k *killer) undisturbed(seed int) []int32 {
	how := killHow(k.b.r, seed)
	ids := must[[]int](k.t)(k.b.e.Prompt(&chat.Prompt{Thinking: true, Effort: chat.EffortLow, Generate: true, Messages: []chat.Message{
		{Role: chat.System, Content: killSystem}, {Role: chat.User, Content: killQuestion(seed)}}}))
	j := job{how: how}
	return k.b.plain(ids, j.sampling(), how.Settings.MaxTokens)
}

// run lets a process go on with the thread and kills it at some moment. It
// returns the last number the process told of each kind.
func (k *killer) run(id session.ID, group string, seed int, kill bool) (told map[string]int, done bool) {
	t := k.t
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), exe, k.b.dir, id.String(), group, strconv.Itoa(seed))
	cmd.Env = append(os.Environ(), childVar+"=killed")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	k.runs++
	kind := []string{"picked", "token", "save", "prefill", "restore", "any"}[k.r.IntN(6)]
	left := 1 + k.r.IntN(12)
	if kind == "save" || kind == "prefill" {
		left = 1 + k.r.IntN(3)
	} else if kind == "restore" {
		left = 1
	}
	told = map[string]int{}
	shot := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, n, _ := strings.Cut(lines.Text(), " ")
		told[what] = must[int](t)(strconv.Atoi(n))
		done = done || what == "done"
		if what == kind || kind == "any" {
			left--
		}
		if kill && left == 0 && !shot {
			// A little later, so that it hits the middle of what was told, too.
			for end := time.Now().Add(time.Duration(k.r.IntN(1500)) * time.Microsecond); time.Now().Before(end); {
			}
			check(t, cmd.Process.Kill()) // and go on reading what it told before
			shot = true
			k.at[what]++
		}
	}
	err = cmd.Wait()
	if shot && err != nil {
		k.kills++
	} else if err != nil || !done {
		t.Fatalf("a process that nobody killed ended with %v", err)
	}
	return told, done
}

// inspect looks at what a process left.
func (k *killer) inspect(id session.ID, group string, want []int32, told map[string]int) {
	t, s := k.t, k.b.s
	t.Helper()
	damage, err := s.Check(t.Context())
	check(t, errors.Join(append(damage, err)...))
	w := k.b.lock(id)
	defer func() { check(t, w.Close()) }()
	if w.Recovered() != nil {
		k.recovered++
		if rec := w.Recovered(); rec.Damaged || rec.Dropped > 0 {
			t.Fatalf("recovered %+v", rec)
		}
	}
	th := must[*session.Thread](t)(s.Load(t.Context(), id, session.LoadOptions{Bodies: true}))
	if len(th.Turns) < 3 {
		if told["picked"] > 0 {
			t.Fatalf("%d turns after %v", len(th.Turns), told)
		}
		return
	}
	have := th.Turns[2].Body.IDs()
	if len(have) > len(want) || !slices.Equal(have, want[:len(have)]) {
		t.Fatalf("tokens %v, want %v", have, want)
	}
	if len(have) < told["token"] {
		t.Fatalf("%d tokens in the journal, %d were published", len(have), told["token"])
	}
	switch missing := told["picked"] - len(have); {
	case missing > 1 && group == "single":
		t.Fatalf("%d tokens were picked, %d are in the journal", told["picked"], len(have))
	case missing == 1:
		k.lost++
	}
}
