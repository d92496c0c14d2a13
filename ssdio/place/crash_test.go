package place

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deltafin/ssdio"
)

// A trialDisk is a real disk that is full after some bytes, or loses its power
// after some operations: then what was not synced is partly there and partly
// not.
type trialDisk struct {
	osDisk

	mu    sync.Mutex // guards below
	room  int64      // bytes until it is full, -1: never
	ops   int        // operations until the power goes, -1: never
	rng   *rand.Rand
	files map[string]*trialFile
	names []func() // take back names that are not durable yet
}

var errPower = errors.New("the power is gone")

func newTrialDisk(room int64, ops int, seed uint64) *trialDisk {
	return &trialDisk{room: room, ops: ops, rng: rand.New(rand.NewPCG(seed, 1)), files: map[string]*trialFile{}}
}

// step counts an operation. The lock is held.
func (d *trialDisk) step() error {
	if d.ops == 0 {
		return errPower
	}
	if d.ops > 0 {
		d.ops--
	}
	return nil
}

type trialFile struct {
	disk    *trialDisk
	path    string
	f       *os.File
	durable []byte           // content at the last sync
	pending []func(*os.File) // changes since
}

func (d *trialDisk) open(path string) (diskFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	old, err := os.ReadFile(path)
	if err != nil && !absent(err) {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	t := d.files[path]
	if t == nil {
		t = &trialFile{disk: d, path: path, durable: old}
		d.files[path] = t
	}
	t.f = f
	return t, nil
}

func (t *trialFile) WriteAt(p []byte, at int64) (int, error) {
	d := t.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return 0, err
	}
	n := len(p)
	if d.room >= 0 {
		if d.room < int64(n) {
			n = int(d.room)
		}
		d.room -= int64(n)
	}
	if _, err := t.f.WriteAt(p[:n], at); err != nil {
		return 0, err
	}
	kept := append([]byte(nil), p[:n]...)
	t.pending = append(t.pending, func(f *os.File) {
		// A torn write: a part of it, from its beginning on.
		_, _ = f.WriteAt(kept[:d.rng.IntN(len(kept)+1)], at)
	})
	if n < len(p) {
		return n, &os.PathError{Op: "write", Path: t.path, Err: syscall.ENOSPC}
	}
	return n, nil
}

func (t *trialFile) Truncate(n int64) error {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if err := t.disk.step(); err != nil {
		return err
	}
	t.pending = append(t.pending, func(f *os.File) { _ = f.Truncate(n) })
	return t.f.Truncate(n)
}

func (t *trialFile) Sync() error {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if err := t.disk.step(); err != nil {
		return err
	}
	var err error
	t.durable, err = os.ReadFile(t.path)
	t.pending = nil
	return err
}

func (t *trialFile) Close() error { return t.f.Close() }

func (d *trialDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	old, oldErr := os.ReadFile(to)
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if t := d.files[from]; t != nil {
		delete(d.files, from)
		d.files[to] = t
		t.path = to
	}
	d.names = append(d.names, func() {
		if d.rng.IntN(2) == 0 {
			return // it made it
		}
		delete(d.files, to)
		if oldErr != nil {
			_ = os.Remove(to)
		} else {
			_ = os.WriteFile(to, old, 0o644)
		}
	})
	return nil
}

func (d *trialDisk) remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	old, oldErr := os.ReadFile(path)
	delete(d.files, path)
	d.names = append(d.names, func() {
		if oldErr == nil && d.rng.IntN(2) == 0 {
			_ = os.WriteFile(path, old, 0o644)
		}
	})
	return d.osDisk.remove(path)
}

func (d *trialDisk) syncDir(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.names = nil
	return nil
}

// crash makes the files what they might be after the power went: what was synced
// and any part of what was not.
func (d *trialDisk) crash(t *testing.T) {
	t.Helper()
	for _, undo := range d.names {
		undo()
	}
	for path, file := range d.files {
		if len(file.pending) == 0 {
			continue
		}
		if err := os.WriteFile(path, file.durable, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range file.pending {
			if d.rng.IntN(2) == 0 {
				change(f)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPowerLoss: the power goes after any number of operations, again and again,
// and the placement is finished all the same, with the right bytes.
func TestPowerLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for round := range 6 {
		w := makeWorld(t, 2, repeat(20, ssdio.BlockSize/4)...)
		drives := w.drives(t)
		p, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{PackSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		crashes := 0
		for try := uint64(0); ; try++ {
			if try > 200 {
				t.Fatal("it never gets through")
			}
			d := newTrialDisk(-1, 1+rng.IntN(60), try+1000*uint64(round))
			err := attempt(t.Context(), w, drives, p, &JobOptions{SyncBytes: 100 << 10, disk: d})
			if err == nil {
				break
			}
			if !errors.Is(err, errPower) {
				t.Fatalf("round %d, try %d: %v", round, try, err)
			}
			crashes++
			d.crash(t)
		}
		if crashes < 2 {
			t.Errorf("round %d: %d crashes only", round, crashes)
		}
		if n := w.readAll(t, drives); n != 20 {
			t.Errorf("%d objects", n)
		}
		for _, dir := range w.folders {
			for _, pack := range packsOf(t, dir) {
				if _, err := VerifyPack(t.Context(), pack, nil); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// attempt goes on with a placement, or begins it.
func attempt(ctx context.Context, w *world, drives []*ssdio.Drive, p *Plan, o *JobOptions) error {
	job, err := Begin(w.model, drives, o)
	if err != nil {
		return err
	}
	defer job.Close()
	f, err := job.Found()
	if err != nil {
		return err
	}
	if f.Plan != nil && f.Plan.ID() != p.ID() {
		return fmt.Errorf("found another plan")
	}
	_, err = job.Run(ctx, p, false)
	return err
}

// TestDiskFull: wherever the drive fills up, the error has numbers and says what
// is safe, and with room again the same command goes on.
func TestDiskFull(t *testing.T) {
	w := makeWorld(t, 2, repeat(24, ssdio.BlockSize)...)
	drives := w.drives(t)
	p, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{PackSize: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, room := range []int64{0, 50, 4096, 300 << 10, 2 << 20, 1, 9 << 20, 100} {
		err := attempt(t.Context(), w, drives, p, &JobOptions{SyncBytes: 1 << 20, disk: newTrialDisk(room, -1, 1)})
		var full *SpaceError
		if !errors.As(err, &full) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		if full.All != 24 || full.Left <= 0 || full.Left > 24*ssdio.BlockSize || full.Done > 24 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d bytes: %+v", room, full)
		}
		most = max(most, full.Done)
		for _, want := range []string{"drive " + full.Drive + " is full", "original files untouched", "goes on from here"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if _, err := os.Stat(filepath.Join(w.folders[0], ManifestName)); !absent(err) {
			t.Fatalf("a manifest was published: %v", err)
		}
	}
	if most < 8 {
		t.Errorf("at most %d objects were safe", most)
	}
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := job.Run(t.Context(), p, false)
	if err := errors.Join(err, job.Close()); err != nil {
		t.Fatal(err)
	}
	if n := r.Drives[0].Resumed + r.Drives[1].Resumed; n < most {
		t.Errorf("%d objects resumed, %d were safe", n, most)
	}
	if n := w.readAll(t, drives); n != 24 {
		t.Errorf("%d objects", n)
	}
}

// TestTooFullToBegin: a drive that got too full since the plan was made is named
// before anything is written.
func TestTooFullToBegin(t *testing.T) {
	w := makeWorld(t, 1, 5000)
	drives := w.drives(t)
	free, _, err := drives[0].Space()
	if err != nil {
		t.Fatal(err)
	}
	// An object that nobody ever reads: its size is what counts.
	w.model.Objects[0].Size = free + 1<<36
	w.model.Objects[0].Extents[0].Length = free + 1<<36
	p, err := NewPlan(w.model, candidates(drives, 1<<60, 1), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var full *SpaceError
	if err := attempt(t.Context(), w, drives, p, nil); !errors.As(err, &full) || full.Left <= full.Free {
		t.Errorf("%+v, %v", full, err)
	}
	if n := packsOf(t, w.folders[0]); len(n) != 0 {
		t.Errorf("packs %v", n)
	}
}

// envKill is what a child of TestKilledWhilePlacing is told: model folder and
// drive folders.
const envKill = "PLACE_TEST_KILL"

// TestKilledWhilePlacing kills a process that places, at random moments, and
// lets the next one go on, until one gets through.
func TestKilledWhilePlacing(t *testing.T) {
	sizes := repeat(60, ssdio.BlockSize)
	if text := os.Getenv(envKill); text != "" {
		part := strings.Split(text, string(os.PathListSeparator))
		w := &world{folders: part[1:]}
		w.model, _ = describeModel(part[0], 7, sizes...)
		drives := w.drives(t)
		p, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{PackSize: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if err := attempt(t.Context(), w, drives, p, &JobOptions{SyncBytes: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		return
	}
	w := makeWorld(t, 2, sizes...)
	arg := strings.Join(append([]string{w.model.Dir}, w.folders...), string(os.PathListSeparator))
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 5))
	kills := 0
	for try := 0; ; try++ {
		if try > 60 {
			t.Fatal("no process ever got through")
		}
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWhilePlacing$", "-test.count=1")
		c.Env = append(os.Environ(), envKill+"="+arg)
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// Later and later, so that the last one surely gets through.
		patience := 20 * math.Pow(1.2, float64(try)) * (0.5 + rng.Float64())
		after := time.AfterFunc(time.Duration(patience*float64(time.Millisecond)), func() { _ = c.Process.Kill() })
		err := c.Wait()
		after.Stop()
		if err == nil {
			break
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("the process failed by itself: %v\n%s", err, &out)
		}
		kills++
	}
	t.Logf("%d kills", kills)
	if kills == 0 {
		t.Error("no process was killed")
	}
	drives := w.drives(t)
	if n := w.readAll(t, drives); n != 60 {
		t.Errorf("%d objects", n)
	}
	checks, err := Verify(t.Context(), drives, nil)
	if err != nil || !checks[0].Good() || !checks[1].Good() {
		t.Errorf("%+v %+v %v", checks[0], checks[1], err)
	}
}

// envHold is what a child of TestTwoProcesses is told, as envKill.
const envHold = "PLACE_TEST_HOLD"

// TestTwoProcesses: while one process works on a drive, another is told so and
// by whom; when the first is killed, the lock goes with it.
func TestTwoProcesses(t *testing.T) {
	if text := os.Getenv(envHold); text != "" {
		part := strings.Split(text, string(os.PathListSeparator))
		w := &world{folders: part[1:]}
		w.model, _ = describeModel(part[0], 7, 5000)
		if _, err := Begin(w.model, w.drives(t), nil); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(os.Stdout, "holding")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent kills this process
		return
	}
	w := makeWorld(t, 1, 5000)
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcesses$", "-test.count=1")
	c.Env = append(os.Environ(), envHold+"="+w.model.Dir+string(os.PathListSeparator)+w.folders[0])
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "holding"; {
	}
	drives := w.drives(t)
	_, err = Begin(w.model, drives, nil)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", c.Process.Pid)) {
		t.Errorf("while process %d works: %v", c.Process.Pid, err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed: that is no news
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatalf("after the process was killed: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
}
