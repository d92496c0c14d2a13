package session

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func randomIDs(r *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(3)) // few values: many shared beginnings
	}
	return ids
}

// TestLongestPrefix compares with looking at every snapshot's tokens.
func TestLongestPrefix(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	r := rand.New(rand.NewPCG(2, 3))
	type entry struct {
		ids []int32
		set string
	}
	held := map[ID]entry{}
	root := randomIDs(r, 40)
	random := func() []int32 { // branches off root somewhere
		ids := slices.Clone(root[:r.IntN(len(root))])
		return append(ids, randomIDs(r, 1+r.IntN(6))...)
	}
	for i := range 120 {
		e := entry{random(), fmt.Sprint(r.IntN(2))}
		id := must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: fmt.Sprint(i), Bytes: 1, Fingerprint: "f" + e.set, KernelSet: e.set}, e.ids))
		held[id] = e
		if r.IntN(4) == 0 {
			for id := range held {
				check(t, s.DropSnapshot(ctx, id))
				delete(held, id)
				break
			}
		}
		ids, set := random(), fmt.Sprint(r.IntN(2))
		want := 0
		for _, e := range held {
			if e.set == set && len(e.ids) <= len(ids) && slices.Equal(e.ids, ids[:len(e.ids)]) {
				want = max(want, len(e.ids))
			}
		}
		got, ok, err := s.FindSnapshot(ctx, ids, "f"+set, set)
		check(t, err)
		if ok != (want > 0) || got.Tokens != want || ok && !slices.Equal(held[got.ID].ids, ids[:want]) {
			t.Fatalf("step %d: %d tokens (%v), want %d", i, got.Tokens, ok, want)
		}
	}
	if n := len(must[[]SnapshotInfo](t)(s.Snapshots(ctx, 0))); n != len(held) {
		t.Errorf("%d entries, want %d", n, len(held))
	}
}

func TestEvictionKeepsWhatSavesMost(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	id, w := newThread(t, s)
	q := say(t, w, "?")
	ids := randomIDs(rand.New(rand.NewPCG(1, 1)), 100)
	add := func(path string, turn ID, n int, bytes int64, cost time.Duration, fingerprint string) {
		t.Helper()
		must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: path, Thread: id, Turn: turn, Bytes: bytes, Cost: cost, Fingerprint: fingerprint, KernelSet: "k"}, ids[:n]))
	}
	add("old weights", q, 10, 10, time.Hour, "g")
	add("short", q, 10, 10, 10*time.Second, "f")   // 1 s a byte
	add("next", q, 20, 10, 11*time.Second, "f")    // 0.1 s a byte above short
	add("long", q, 90, 20, 100*time.Second, "f")   // 4.45 s a byte above next
	add("no turn", 0, 50, 10, 30*time.Second, "f") // 1.9 s a byte above next
	check(t, second(w.Undo(ctx, "")))
	say(t, w, "another") // no branch reaches q any more, not even by redo
	q2 := must[*Thread](t)(s.Load(ctx, id, LoadOptions{})).Branches[0].Leaf
	add("live", q2, 95, 10, 105*time.Second, "f")
	must[string](t)(s.Fork(ctx, id, q, -1, "back")) // now one does
	var order []string
	evict := func(budget int64) {
		t.Helper()
		must[[]SnapshotInfo](t)(s.EvictSnapshots(ctx, budget, "f", "k", func(path string) error {
			order = append(order, path)
			return fs.ErrNotExist // counts as removed
		}))
	}
	evict(1000)
	equal(t, order, nil)
	evict(60)
	equal(t, order, []string{"old weights"})
	evict(0)
	// next adds least. Without it long and no turn rest on short: long saves 4.5,
	// no turn 2 and live, on top of long, 0.5 s a byte; then short 1; then no
	// turn 3 (on nothing); live and long were worth 10.5 and 5 by then.
	equal(t, order, []string{"old weights", "next", "live", "short", "no turn", "long"})
	if n := len(must[[]SnapshotInfo](t)(s.Snapshots(ctx, 0))); n != 0 {
		t.Errorf("%d entries left", n)
	}
}

func TestEvictionStopsAtAnError(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	for _, path := range []string{"a", "b"} {
		must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: path, Bytes: 5}, []int32{int32(path[0])}))
	}
	gone, err := s.EvictSnapshots(ctx, 0, "", "", func(path string) error {
		if path == "b" {
			return fs.ErrPermission
		}
		return nil
	})
	if err == nil || len(gone) != 1 || gone[0].Path != "a" {
		t.Errorf("%v, %v", gone, err)
	}
	if left := must[[]SnapshotInfo](t)(s.Snapshots(ctx, 0)); len(left) != 1 || left[0].Path != "b" {
		t.Errorf("left %+v", left)
	}
}

func TestGCTakesOnlyWhatNobodyReaches(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	id, w := newThread(t, s)
	q1 := say(t, w, "one")
	check(t, second(w.Undo(ctx, "")))
	q2 := say(t, w, "two") // q1 is off every branch
	must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: "one", Thread: id, Turn: q1, Bytes: 5}, []int32{1}))
	must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: "two", Thread: id, Turn: q2, Bytes: 7}, []int32{2}))
	check(t, second(w.Undo(ctx, ""))) // q2 can still be redone
	check(t, w.Close())
	trashed := must[ThreadInfo](t)(s.Create(ctx, "trashed", ""))
	must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: "three", Thread: trashed.ID, Bytes: 9}, []int32{3}))
	check(t, s.Trash(ctx, trashed.ID))
	var removed []string
	remove := func(path string) error { removed = append(removed, path); return nil }
	g := must[Garbage](t)(s.GC(ctx, true, remove))
	if len(removed) != 0 || len(g.Snapshots) != 2 || len(g.Threads) != 1 || g.Bytes != 14 {
		t.Errorf("dry run: removed %v, found %+v", removed, g)
	}
	must[Garbage](t)(s.GC(ctx, false, remove))
	equal(t, removed, []string{"one", "three"})
	th := must[*Thread](t)(s.Load(ctx, id, LoadOptions{Bodies: true}))
	if len(th.Turns) != 2 {
		t.Errorf("GC took turns of a living thread: %+v", th.Turns)
	}
	if _, err := s.Info(ctx, trashed.ID); err == nil {
		t.Error("the trashed thread is still there")
	}
	sound(t, s)
}

func TestTrashAndBack(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	info := must[ThreadInfo](t)(s.Create(ctx, "keep", ""))
	check(t, s.Trash(ctx, info.ID))
	if n := len(must[[]ThreadInfo](t)(s.List(ctx, ListOptions{}))); n != 0 {
		t.Errorf("%d listed", n)
	}
	if _, err := s.Lock(ctx, info.ID); err == nil {
		t.Error("a trashed thread can be written")
	}
	check(t, s.Untrash(ctx, info.ID))
	must[Garbage](t)(s.GC(ctx, false, nil))
	if n := len(must[[]ThreadInfo](t)(s.List(ctx, ListOptions{}))); n != 1 {
		t.Errorf("%d listed", n)
	}
}
