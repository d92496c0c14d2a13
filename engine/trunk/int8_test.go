package trunk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
	"deltafin/ssdio"
)

// convert writes the int8 trunk of a model to a file.
func convert(t testing.TB, ck *checkpoint.Checkpoint, workers int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), Int8Name)
	var out bytes.Buffer
	if _, err := WriteInt8(t.Context(), ck, &out, workers, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInt8IsTheTrunk: every matrix of the model is in the file once. A converted one is
// within half a scale of the model's, element by element, and the header's errors are
// those found here; another has the model's own bytes. Routers and gates are such.
func TestInt8IsTheTrunk(t *testing.T) {
	for _, dir := range models {
		ck := open(t, dir)
		path := convert(t, ck, 2)
		f, err := OpenInt8(path, ck)
		if err != nil {
			t.Fatal(err)
		}
		if bad, err := f.Verify(t.Context(), nil); err != nil || len(bad) > 0 {
			t.Fatalf("%s: %v, %v", dir, bad, err)
		}
		data, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		exact, err := NewCatalog(ck)
		if err != nil {
			t.Fatal(err)
		}
		cat, converted := f.Catalog(), 0
		for i := range f.Units {
			u := &f.Units[i]
			if len(u.Tensors) != len(exact.units[i].weights) || u.Offset%page != 0 {
				t.Fatalf("%s: unit %d at %d has %d matrices, the model %d", dir, i, u.Offset, len(u.Tensors), len(exact.units[i].weights))
			}
			for k := range u.Tensors {
				x := &u.Tensors[k]
				at := data[u.Offset+x.Offset:][:x.Length]
				raw, err := ck.Tensor(x.Name)
				if err != nil || x.Offset%page != 0 {
					t.Fatalf("%s at %d: %v", x.Name, x.Offset, err)
				}
				w := cat.units[i].weights[x.Name]
				if x.Why != "" {
					if !bytes.Equal(at, raw.Data) || w.format == kernel.Int8 || x.MaxError != 0 {
						t.Errorf("%s: %s is not exact", dir, x.Name)
					}
					continue
				}
				converted++
				if x.class == checkpoint.Router {
					t.Errorf("%s was converted", x.Name)
				}
				checkRounded(t, x, f.Group, at, raw)
			}
		}
		if converted == 0 {
			t.Errorf("%s: nothing was converted", dir)
		}
		// The demonstration model is the one whose sizes are anything like K3's.
		if dir == "" && (cat.Total() > exact.Total()*6/10 || f.Worst() > 0.01) {
			t.Errorf("%d bytes of %d, worst relative error %v", cat.Total(), exact.Total(), f.Worst())
		}
	}
}

func checkRounded(t *testing.T, x *Int8Tensor, group int, at []byte, raw checkpoint.Tensor) {
	t.Helper()
	rows, cols := x.Shape[0], x.Shape[1]
	format := kernel.BF16
	if raw.DType == checkpoint.F32 {
		format = kernel.F32
	}
	want, err := kernel.NewMatrix(format, rows, cols, raw.Data, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := kernel.NewMatrix(kernel.Int8, rows, cols, at[:rows*cols], at[rows*cols:], group)
	if err != nil || int64(got.Bytes()) != x.Length {
		t.Fatalf("%s: %v", x.Name, err)
	}
	a, b := make([]float32, cols), make([]float32, cols)
	worst, sum := 0.0, 0.0
	groups := (cols + group - 1) / group
	for r := range rows {
		kernel.Row(a, &want, r)
		kernel.Row(b, &got, r)
		for c := range a {
			scale := math.Float32frombits(binary.LittleEndian.Uint32(got.Scale[4*(r*groups+c/group):]))
			d := math.Abs(float64(a[c]) - float64(b[c]))
			if d > float64(scale)/2*(1+1e-5) {
				t.Fatalf("%s [%d][%d]: %v became %v, scale %v", x.Name, r, c, a[c], b[c], scale)
			}
			worst, sum = max(worst, d), sum+d*d
		}
	}
	rms := math.Sqrt(sum / float64(rows*cols))
	if worst != x.MaxError || math.Abs(rms-x.RMSError) > 1e-12+1e-9*rms || x.Relative() > 0.012 {
		t.Errorf("%s: errors %v and %v, the header has %v and %v, relative %v", x.Name, worst, rms, x.MaxError, x.RMSError, x.Relative())
	}
}

// TestInt8RoundsEverything: extremes of the format keep to the bound, and what cannot
// be rounded is said.
func TestInt8RoundsEverything(t *testing.T) {
	inf := float32(math.Inf(1))
	big := float32(math.MaxFloat32)
	for _, row := range [][]float32{
		{0, 0, 0}, {1, -1, 0.5, -0.25}, {big, -big, 1, big / 3}, {1e-29, -3e-30, 0}, {1e-31, -1e-40}, {127, -127, 63.5, 0.5, 1.5, 2.5, -0.5},
		{inf, 1}, {1, -inf}, {float32(math.NaN()), 2}, {2, float32(math.NaN()), 5},
	} {
		codes, scales := make([]byte, len(row)), make([]byte, 4)
		e := roundRow(codes, scales, row, 16)
		scale := math.Float32frombits(binary.LittleEndian.Uint32(scales))
		finite := true
		for _, v := range row {
			finite = finite && math.Abs(float64(v)) <= math.MaxFloat32
		}
		for i, v := range row {
			if d := math.Abs(float64(v) - float64(float32(int8(codes[i]))*scale)); finite && !(d <= float64(scale)/2*(1+1e-5)+leastScaled) {
				t.Errorf("%v: element %d became %d times %v", row, i, int8(codes[i]), scale)
			}
		}
		if e.bad == finite {
			t.Errorf("%v: refused %v", row, e.bad)
		}
	}
}

// TestInt8OnAnyWorkers: the bytes of the file are a function of the model alone.
func TestInt8OnAnyWorkers(t *testing.T) {
	ck := open(t, "../testdata/golden/tiny-a")
	var files [3]bytes.Buffer
	for i := range files {
		var last Progress
		if _, err := WriteInt8(t.Context(), ck, &files[i], 1+2*i, func(p Progress) { last = p }); err != nil {
			t.Fatal(err)
		}
		if last.Done == 0 || last.Done > last.Total || last.Total-last.Done >= page {
			t.Errorf("told %+v at the end", last)
		}
		if !bytes.Equal(files[i].Bytes(), files[0].Bytes()) {
			t.Errorf("%d workers wrote another file", 1+2*i)
		}
	}
}

// TestInt8IsRefused: what is cut off, changed or of another model does not open, or is
// found by Verify and Load.
func TestInt8IsRefused(t *testing.T) {
	ck, other := open(t, "../testdata/golden/tiny-c"), open(t, "../testdata/golden/tiny-b")
	path := convert(t, ck, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenInt8(path, ck)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 4
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		ck   *checkpoint.Checkpoint
		want error
	}{
		{"empty", nil, ck, ErrInt8Damaged},
		{"cut in the matrices", whole[:len(whole)/2], ck, ErrInt8Damaged},
		{"cut at the end", whole[:len(whole)-1], ck, ErrInt8Damaged},
		{"longer", append(bytes.Clone(whole), 0), ck, ErrInt8Damaged},
		{"without a page", append(bytes.Clone(whole[:page]), whole[2*page:]...), ck, ErrInt8Damaged},
		{"magic", flip(3), ck, ErrInt8Damaged},
		{"header", flip(len(whole) - int8Tail - 10), ck, ErrInt8Damaged},
		{"length of the header", flip(len(whole) - int8Tail + 6), ck, ErrInt8Damaged},
		{"version", flip(len(whole) - 12), ck, ErrInt8Foreign},
		{"model", whole, other, ErrInt8Foreign},
	} {
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenInt8(path, c.ck); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	at := int(f.Units[2].Offset + f.Units[2].Tensors[1].Offset + 5)
	if err := os.WriteFile(path, flip(at), 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenInt8(path, ck); err != nil {
		t.Fatal(err)
	}
	if bad, err := f.Verify(t.Context(), nil); err != nil || len(bad) != 1 {
		t.Errorf("a bit of a matrix: %v, %v", bad, err)
	}
	if _, err := f.Load(); !errors.Is(err, ErrInt8Damaged) {
		t.Errorf("a bit of a matrix: %v", err)
	}
	if _, err := OpenInt8(filepath.Join(t.TempDir(), Int8Name), ck); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestInt8IsCancelled: the work ends with the cause, wherever it is, and at a writer
// that fails with its error.
func TestInt8IsCancelled(t *testing.T) {
	ck := open(t, "../testdata/golden/tiny-b")
	stop := errors.New("stop here")
	for _, after := range []int{1, 5, 20} {
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		_, err := WriteInt8(ctx, ck, io.Discard, 1, func(Progress) {
			if n++; n == after {
				cancel(stop)
			}
		})
		if !errors.Is(err, stop) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
	for _, room := range []int{0, page, 3 * page} {
		if _, err := WriteInt8(t.Context(), ck, &shortWriter{left: room}, 1, nil); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}

type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// FuzzReadInt8: no file opens but one that is laid out as the model calls for.
func FuzzReadInt8(f *testing.F) {
	ck, err := checkpoint.Open("../testdata/golden/tiny-c")
	if err != nil {
		f.Fatal(err)
	}
	defer ck.Close()
	units, err := matricesOf(ck)
	if err != nil {
		f.Fatal(err)
	}
	var whole bytes.Buffer
	if _, err := WriteInt8(f.Context(), ck, &whole, 1, nil); err != nil {
		f.Fatal(err)
	}
	end := planInt8("", units, Int8Group).end()
	f.Add(whole.Bytes()[end : whole.Len()-int8Tail])
	f.Add([]byte(`{"group":128,"units":[{}]}`))
	f.Add([]byte(`{"group":-16}`))
	f.Fuzz(func(t *testing.T, header []byte) {
		// The sums are made right, so that what is behind them is tried.
		le := binary.LittleEndian
		tail := le.AppendUint64(bytes.Clone(header), uint64(len(header)))
		tail = le.AppendUint32(tail, ssdio.Sum(header))
		tail = append(le.AppendUint32(tail, int8Version), int8Magic...)
		got, err := readInt8(headerAlone{end, tail}, end+int64(len(tail)), ck.Fingerprint(), units)
		if err == nil && (got.Fingerprint != ck.Fingerprint() || len(got.Units) != len(units) || got.Catalog().Total() <= 0) {
			t.Errorf("%.200q was taken", header)
		}
		if err != nil && !errors.Is(err, ErrInt8Damaged) && !errors.Is(err, ErrInt8Foreign) {
			t.Error(err)
		}
	})
}

// headerAlone is a file without its matrices, of which nothing is read.
type headerAlone struct {
	from int64
	tail []byte
}

func (h headerAlone) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 {
		return copy(p, int8Magic), nil
	}
	return copy(p, h.tail[off-h.from:]), nil
}
