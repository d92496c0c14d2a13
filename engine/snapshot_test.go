package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deltafin/engine/checkpoint/checkpointtest"
	"deltafin/engine/kernel"
)

// snapshotDirEnv makes the test binary the fresh process of TestSnapshotAtEveryPosition.
const snapshotDirEnv = "DELTAFIN_TEST_SNAPSHOTS"

const snapshotRun = 200

// snapshotIDs are the tokens of the run.
func snapshotIDs() []int {
	ids := make([]int, snapshotRun)
	for i := range ids {
		ids[i] = (i*i*7 + i*31 + 5) % 512
	}
	return ids
}

// digest sums up the bits of logits.
func digest(logits []float32) uint64 {
	h := fnv.New64a()
	for _, v := range logits {
		b := math.Float32bits(v)
		h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
	}
	return h.Sum64()
}

// TestSnapshotAtEveryPosition keeps a 200-token run at each of its positions. A
// fresh process restores every one, continues, and must find the same logits.
func TestSnapshotAtEveryPosition(t *testing.T) {
	if dir := os.Getenv(snapshotDirEnv); dir != "" {
		restoreAll(t, dir)
		return
	}
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	if err := os.Mkdir(model, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkpointtest.Write(model, checkpointtest.Options{Config: checkpointtest.Small()}, 5); err != nil {
		t.Fatal(err)
	}
	e := open(t, Options{Model: model, Threads: 2})
	ids, seq := snapshotIDs(), e.NewSequence()
	var want strings.Builder
	for i := range ids {
		read(t, e, seq, ids[:i+1])
		fmt.Fprintf(&want, "%x\n", digest(seq.logits))
		if err := e.SaveSnapshot(filepath.Join(dir, fmt.Sprintf("%d.snap", i+1)), seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "want"), []byte(want.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSnapshotAtEveryPosition$", "-test.v", fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Env = append(os.Environ(), snapshotDirEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		// Under an emulator the test binary is not a program of this machine: the
		// fresh engine then has to do without a process of its own.
		restoreAll(t, dir)
		return
	}
	if err != nil {
		t.Fatalf("the fresh process: %v\n%s", err, out)
	}
	if !bytes.Contains(out, fmt.Appendf(nil, "restored %d snapshots", snapshotRun)) {
		t.Fatalf("the fresh process restored nothing:\n%s", out)
	}
}

// read brings a sequence to the end of ids.
func read(t *testing.T, e *Engine, seq *Sequence, ids []int) Result {
	t.Helper()
	res, err := e.Generate(context.Background(), seq, Request{Tokens: ids}, Listener{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// restoreAll is the fresh process: another number of threads, the slowest kernels.
func restoreAll(t *testing.T, dir string) {
	e := open(t, Options{Model: filepath.Join(dir, "model"), Threads: 1, Kernel: "generic"})
	text, err := os.ReadFile(filepath.Join(dir, "want"))
	if err != nil {
		t.Fatal(err)
	}
	want, ids := strings.Fields(string(text)), snapshotIDs()
	step := 1
	if testing.Short() {
		step = 9
	}
	for n := 1; n <= snapshotRun; n += step {
		seq, err := e.LoadSnapshot(filepath.Join(dir, fmt.Sprintf("%d.snap", n)))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", digest(seq.logits)); seq.Len() != n || got != want[n-1] {
			t.Fatalf("snapshot %d: at %d, logits %s, want %s", n, seq.Len(), got, want[n-1])
		}
		// Two single steps, and from every tenth one jump to the end.
		for _, to := range []int{n + 1, n + 2, snapshotRun} {
			if to > snapshotRun || to <= seq.Len() || to == snapshotRun && n%10 != 0 {
				continue
			}
			at := seq.Len()
			if res := read(t, e, seq, ids[:to]); res.Reused != at {
				t.Fatalf("going on from %d reused %d", at, res.Reused)
			}
			if got := fmt.Sprintf("%x", digest(seq.logits)); got != want[to-1] {
				t.Fatalf("snapshot %d continued to %d: logits %s, want %s", n, to, got, want[to-1])
			}
		}
	}
	t.Logf("restored %d snapshots", snapshotRun)
}

// TestDamagedSnapshotIsRefused flips, cuts and extends a snapshot at many places:
// always ErrSnapshotDamaged, never a panic, never a sequence.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	e := open(t, Options{})
	seq := e.NewSequence()
	read(t, e, seq, []int{3, 1, 4, 1, 5})
	var buf bytes.Buffer
	if err := e.WriteSnapshot(&buf, seq); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	if got, want := int64(len(good)), e.SnapshotBytes(seq.Len()); got > want {
		t.Errorf("a snapshot has %d bytes, announced were %d", got, want)
	}
	refused := func(what string, b []byte) {
		t.Helper()
		var foreign *SnapshotForeignError
		if _, err := e.ReadSnapshot(bytes.NewReader(b)); !errors.Is(err, ErrSnapshotDamaged) && !errors.As(err, &foreign) {
			t.Errorf("%s: %v", what, err)
		}
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := e.LoadSnapshot(path); !errors.Is(err, ErrSnapshotDamaged) && !errors.As(err, &foreign) {
			t.Errorf("%s as a file: %v", what, err)
		}
	}
	for at := 0; at < len(good); at += 1 + len(good)/40 {
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		refused(fmt.Sprintf("bit flipped at %d", at), bad)
		refused(fmt.Sprintf("cut at %d", at), good[:at])
	}
	refused("last byte missing", good[:len(good)-1])
	refused("empty", nil)
	refused("no snapshot", []byte("this is a text file about something else entirely"))
}

func TestForeignSnapshotIsRefused(t *testing.T) {
	e := open(t, Options{})
	seq := e.NewSequence()
	if err := e.WriteSnapshot(&bytes.Buffer{}, seq); err == nil {
		t.Error("a sequence that has seen nothing was kept")
	}
	read(t, e, seq, []int{3, 1, 4})
	var buf bytes.Buffer
	if err := e.WriteSnapshot(&buf, seq); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, checkpointtest.Options{Config: checkpointtest.Small()}, 5); err != nil {
		t.Fatal(err)
	}
	var foreign *SnapshotForeignError
	if _, err := open(t, Options{Model: dir}).ReadSnapshot(&buf); !errors.As(err, &foreign) || foreign.What != "model" {
		t.Errorf("another model's snapshot: %v", err)
	}
	e.info.Arithmetic = "another"
	buf.Reset()
	if err := e.WriteSnapshot(&buf, seq); err != nil {
		t.Fatal(err)
	}
	e.info.Arithmetic = kernel.Arithmetic
	if _, err := e.ReadSnapshot(&buf); !errors.As(err, &foreign) || foreign.What != "arithmetic" {
		t.Errorf("another arithmetic's snapshot: %v", err)
	}
}

// TestSnapshotReplacesAtomically: a failed save leaves the old file and no litter.
func TestSnapshotReplacesAtomically(t *testing.T) {
	e := open(t, Options{})
	dir := t.TempDir()
	path := filepath.Join(dir, "s.snap")
	seq := e.NewSequence()
	read(t, e, seq, []int{3, 1, 4})
	if err := e.SaveSnapshot(path, seq); err != nil {
		t.Fatal(err)
	}
	if err := e.SaveSnapshot(path, e.NewSequence()); err == nil {
		t.Fatal("an empty sequence was saved")
	}
	back, err := e.LoadSnapshot(path)
	if err != nil || back.Len() != 3 {
		t.Errorf("after a failed save: %v", err)
	}
	if err := e.SaveSnapshot(filepath.Join(dir, "none", "s"), seq); err == nil {
		t.Error("saved into a folder that is not there")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func FuzzReadSnapshot(f *testing.F) {
	e, err := Open(context.Background(), Options{Threads: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { e.Close() })
	f.Add([]byte(snapshotMagic))
	f.Add([]byte(snapshotMagic + "\x02\x00\x00\x00{}"))
	f.Add([]byte(snapshotMagic + "\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if seq, err := e.ReadSnapshot(bytes.NewReader(b)); err == nil {
			t.Errorf("%d arbitrary bytes made a sequence of %d tokens", len(b), seq.Len())
		}
	})
}
