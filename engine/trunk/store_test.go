package trunk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
	"deltafin/ssdio/place"
)

// newStore opens the trunk of a golden model in place on one drive, with faults.
func newStore(t *testing.T, model, faults string, memory func(*Catalog) int64) (*Store, *checkpoint.Checkpoint) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), model)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "golden", model))); err != nil {
		t.Fatal(err)
	}
	ck := open(t, dir)
	cat, err := NewCatalog(ck)
	if err != nil {
		t.Fatal(err)
	}
	var fleet emulate.Fleet
	drive, err := fleet.Open(dir+faults, &ssdio.DriveOptions{Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := place.Open(cat.Model(), []*ssdio.Drive{drive}, "")
	if err != nil {
		t.Fatal(err)
	}
	set, err := ssdio.Open(p.Drives, p.Layout, &ssdio.Options{
		StallAfter: 50 * time.Millisecond, StuckAfter: 100 * time.Millisecond, ProbeEvery: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(cat, set, p.Layout, cat.Plan(memory(cat)))
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	t.Cleanup(func() {
		lost = s.plan.Buffers - len(s.free) - len(s.queue)
		fleet.Release()
		if err := set.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); (lost > 0) != errors.Is(err, ssdio.ErrArenaBusy) || lost == 0 && err != nil {
			t.Errorf("closing with %d lost buffers: %v", lost, err)
		}
	})
	return s, ck
}

// matrices compares every matrix of a unit with the checkpoint's bytes.
func (s *Store) matrices(t *testing.T, ck *checkpoint.Checkpoint, unit int) {
	t.Helper()
	for name := range s.cat.units[unit].weights {
		want, err := ck.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Matrix(unit, name)
		if err != nil || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%s: other bytes, %v", name, err)
		}
	}
}

// TestLayersGoRound: in several passes every layer has its own bytes, and behind the
// last layer the first streamed one of the next pass is already asked for.
func TestLayersGoRound(t *testing.T) {
	for _, memory := range []func(*Catalog) int64{
		(*Catalog).Least,
		func(c *Catalog) int64 { return c.plan(3, leastBuffers).Memory },
		func(*Catalog) int64 { return 1 << 40 },
	} {
		s, ck := newStore(t, "tiny-a", ",latency=20us,jitter=200us", memory)
		if err := s.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		head := s.cat.Head()
		for range 3 {
			for i := range head {
				if err := s.Layer(t.Context(), i); err != nil {
					t.Fatal(err)
				}
				s.matrices(t, ck, i)
				s.Done(i)
			}
			s.matrices(t, ck, head)
			if s.Streams() && (len(s.queue) != s.plan.Buffers || s.queue[0].unit != s.plan.Resident) {
				t.Errorf("behind a pass %d layers are on their way", len(s.queue))
			}
		}
		st := s.Stats()
		if n := int64(3 * (head - s.plan.Resident)); st.Layers != n || st.Wasted != 0 || st.Read < 3*st.PerPass {
			t.Errorf("%+v after three passes", st)
		}
		if _, err := s.Matrix(head-1, "nothing"); err == nil {
			t.Error("a matrix that is not there was given")
		}
		if _, err := s.Matrix(s.plan.Resident, ""); err == nil {
			t.Error("a layer that was given back was given")
		}
	}
}

// TestStuckReadCostsABuffer: a read that never returns fails the pass and takes its
// buffer with it; the next pass goes on with the others, until there are none.
func TestStuckReadCostsABuffer(t *testing.T) {
	s, ck := newStore(t, "tiny-c", ",fault=stall/after=20/count=1", (*Catalog).Least)
	if err := s.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 400 {
		for i := range s.cat.Head() {
			err := s.Layer(t.Context(), i)
			if err == nil {
				s.matrices(t, ck, i)
				s.Done(i)
				continue
			}
			var lost *Error
			if !errors.As(err, &lost) || lost.Layer != i {
				t.Fatalf("layer %d: %v", i, err)
			}
			failed++
			break
		}
		if left := len(s.free) + len(s.queue); failed > 0 && left == s.plan.Buffers-1 && s.Stats().Layers > int64(3*s.cat.Head()) {
			return // went on after it
		}
	}
	t.Fatalf("%d passes failed; %d of %d buffers left", failed, len(s.free)+len(s.queue), s.plan.Buffers)
}

// TestLoadIsCancelled: what stays is not there then, and the memory can be given back.
func TestLoadIsCancelled(t *testing.T) {
	s, _ := newStore(t, "tiny-a", ",latency=1ms", func(*Catalog) int64 { return 1 << 40 })
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop here")
	err := s.Load(ctx, func(p Progress) { cancel(stop) })
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
}

// TestLoadFails: the error names the layer and the drive.
func TestLoadFails(t *testing.T) {
	s, _ := newStore(t, "tiny-a", ",fault=gone/after=4/count=always", func(*Catalog) int64 { return 1 << 40 })
	err := s.Load(t.Context(), nil)
	var lost *Error
	if !errors.As(err, &lost) || lost.Drive != "home" {
		t.Fatalf("%v, want an error that names the drive", err)
	}
}
