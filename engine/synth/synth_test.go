package synth

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"deltafin/engine"
	"deltafin/engine/checkpoint"
)

func small() Options {
	return Options{Like: "small", Layers: 6, Experts: 24, Seed: 7}
}

func write(t *testing.T, dir string, o Options) *Model {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOpensAndRuns: the engine takes what was written, and its activations neither
// vanish nor explode.
func TestOpensAndRuns(t *testing.T) {
	dir := t.TempDir()
	m := write(t, dir, small())
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	if err := ck.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ck.Config(); got.Layers != 6 || got.Experts != 24 || ck.ExpertFormat() != checkpoint.MXFP4 {
		t.Errorf("opened %+v", got)
	}
	if _, _, _, one := ck.ExpertSpan(3, 5); !one {
		t.Error("the tensors of an expert are not back to back")
	}
	e, err := engine.Open(t.Context(), engine.Options{Model: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var sum, n float64
	err = e.Logits(t.Context(), []int{1, 200, 33, 4, 77, 120, 9, 9}, 0, func(l []float32) error {
		for _, v := range l {
			sum += float64(v) * float64(v)
			n++
		}
		return nil
	})
	if rms := math.Sqrt(sum / n); err != nil || rms < 0.3 || rms > 3 {
		t.Errorf("logits have a root mean square of %g, %v", rms, err)
	}
	if m.Bytes() == 0 {
		t.Error("no bytes")
	}
}

// TestSameBytes: what is made depends on the options alone, not on how often it was
// interrupted.
func TestSameBytes(t *testing.T) {
	whole, cut := t.TempDir(), t.TempDir()
	m := write(t, whole, small())
	rounds := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		start := int64(-1)
		again, err := New(small())
		if err != nil {
			t.Fatal(err)
		}
		err = again.Write(ctx, cut, func(p Progress) {
			if start < 0 {
				start = p.Done
			}
			if p.Done > start+m.shards[rounds].size/2 {
				cancel() // in the middle of a shard
			}
		})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		// The next round gets past the shard that this one broke off in.
		if rounds++; rounds == len(m.shards) {
			write(t, cut, small())
			break
		}
	}
	if rounds == 0 {
		t.Error("nothing was interrupted")
	}
	names, err := filepath.Glob(filepath.Join(whole, "*"))
	if err != nil || len(names) != len(m.shards)+6 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		a, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(cut, filepath.Base(name)))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs, %v", filepath.Base(name), err)
		}
	}
}

// TestFillsInPieces: a tensor is the same bytes whatever pieces it is made in.
func TestFillsInPieces(t *testing.T) {
	for name, fill := range map[string]filler{
		"normal16": normal16(0, 1), "normal32": normal32(1, 0.1, 90), "codes": codes, "scales": scales(64, 1),
	} {
		whole, parts := make([]byte, 1024), make([]byte, 1024)
		fill(3, whole, 0)
		for at := 0; at < len(parts); at += 96 {
			fill(3, parts[at:min(at+96, len(parts))], int64(at))
		}
		if !bytes.Equal(whole, parts) {
			t.Errorf("%s: pieces differ from the whole", name)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, o := range []Options{
		{Like: "k4"}, {Layers: 1}, {Layers: -3}, {Experts: 8}, {Vocab: 100}, {Vocab: 1 << 20}, {Skew: -1}, {Skew: math.NaN()},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := New(small())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), dir, nil); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a folder with other files: %v", err)
	}
	dir = t.TempDir()
	write(t, dir, small())
	o := small()
	o.Seed++
	if m, err = New(o); err != nil {
		t.Fatal(err)
	}
	var other *OtherError
	if err := m.Write(t.Context(), dir, nil); !errors.As(err, &other) {
		t.Errorf("a folder of another seed: %v", err)
	}
}

// TestK3Dimensions: with K3's depth and experts the layout has the bytes of the
// specification (section 2.4) but for the vocabulary.
func TestK3Dimensions(t *testing.T) {
	m, err := New(Options{Layers: 5, Experts: 16})
	if err != nil {
		t.Fatal(err)
	}
	a := m.Config().Account()
	if got := a.ExpertsBytesPerToken(); got != 4*280_756_224 {
		t.Errorf("%d bytes of experts per token in 4 layers", got)
	}
	var data int64
	for i := range m.shards {
		data += m.shards[i].size - int64(len(m.shards[i].header))
	}
	if total := a.Total(); data != total.Bytes {
		t.Errorf("%d bytes of tensors, by the account %d", data, total.Bytes)
	}
}

// TestSkewsAreApart: models of one seed that differ in the skew alone are not taken
// for one another, although a fingerprint looks at samples.
func TestSkewsAreApart(t *testing.T) {
	seen := map[string]float64{}
	for _, skew := range []float64{0, 0.7, 1.2} {
		o, dir := small(), t.TempDir()
		o.Skew = skew
		write(t, dir, o)
		ck, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		print := ck.Fingerprint()
		if err := ck.Close(); err != nil {
			t.Error(err)
		}
		if other, twice := seen[print]; twice {
			t.Errorf("skews %g and %g have one fingerprint", other, skew)
		}
		seen[print] = skew
	}
}
