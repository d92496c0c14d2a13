package place

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// A world is a model on disk with the truth beside it, and folders to place on.
type world struct {
	model   *Model
	truth   map[ssdio.Key][]byte
	folders []string
	fleet   emulate.Fleet
}

// print of the test models.
func testPrint(seed uint64) string { return strings.Repeat(fmt.Sprintf("%016x", seed|1<<60), 4) }

// makeModel writes objects of the given sizes into files of a few objects each,
// at odd offsets. An object of which two extents are wanted is scattered.
func makeModel(t testing.TB, dir string, seed uint64, scattered bool, sizes ...int) (*Model, map[ssdio.Key][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &Model{Fingerprint: testPrint(seed), Dir: dir}
	truth := map[ssdio.Key][]byte{}
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	for at := 0; at < len(sizes); at += 4 {
		name := fmt.Sprintf("model-%05d.safetensors", at/4+1)
		file := make([]byte, 137+at) // a header of odd length
		for i := at; i < min(at+4, len(sizes)); i++ {
			key := ssdio.Key{Layer: int32(i / 4), Expert: int32(i % 4)}
			data := make([]byte, sizes[i])
			_, _ = rng.Read(data)
			truth[key] = data
			o := Object{Key: key, Size: int64(len(data))}
			if half := len(data) / 3; scattered && half > 0 {
				o.Extents = []Extent{{name, int64(len(file)), int64(half)}}
				file = append(append(file, data[:half]...), "between"...)
				o.Extents = append(o.Extents, Extent{name, int64(len(file)), int64(len(data) - half)})
				file = append(file, data[half:]...)
			} else {
				o.Extents = []Extent{{name, int64(len(file)), int64(len(data))}}
				file = append(file, data...)
			}
			m.Objects = append(m.Objects, o)
		}
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return m, truth
}

// describeModel is the description that makeModel gives of what it wrote.
func describeModel(dir string, seed uint64, sizes ...int) (*Model, int) {
	m := &Model{Fingerprint: testPrint(seed), Dir: dir}
	end := 0
	for i, n := range sizes {
		if i%4 == 0 {
			end = 137 + i
		}
		m.Objects = append(m.Objects, Object{
			Key: ssdio.Key{Layer: int32(i / 4), Expert: int32(i % 4)}, Size: int64(n),
			Extents: []Extent{{fmt.Sprintf("model-%05d.safetensors", i/4+1), int64(end), int64(n)}},
		})
		end += n
	}
	return m, end
}

// repeat gives n sizes.
func repeat(n, size int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = size
	}
	return out
}

// someSizes are objects from one byte to several blocks.
func someSizes(n int) []int {
	base := []int{1, 4095, 5120, ssdio.BlockSize - 1, ssdio.BlockSize, 2*ssdio.BlockSize + 777, 5 * ssdio.BlockSize, 9*ssdio.BlockSize + 4096}
	out := make([]int, n)
	for i := range out {
		out[i] = base[i%len(base)]
	}
	return out
}

func makeWorld(t testing.TB, folders int, sizes ...int) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{}
	w.model, w.truth = makeModel(t, filepath.Join(base, "model"), 7, false, sizes...)
	for i := range folders {
		dir := filepath.Join(base, fmt.Sprintf("drive%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w.folders = append(w.folders, dir)
	}
	t.Cleanup(w.fleet.Release)
	return w
}

// drives opens the folders (or those that are named), with a specification each.
func (w *world) drives(t testing.TB, specs ...string) []*ssdio.Drive {
	t.Helper()
	var out []*ssdio.Drive
	for i, dir := range w.folders {
		spec := dir
		if i < len(specs) && specs[i] != "" {
			spec += "," + specs[i]
		}
		d, err := w.fleet.Open(spec, &ssdio.DriveOptions{Name: fmt.Sprintf("d%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// candidates gives the drives speeds and the same room.
func candidates(drives []*ssdio.Drive, room int64, speeds ...float64) []Candidate {
	var out []Candidate
	for i, d := range drives {
		out = append(out, Candidate{ID: d.ID, Name: d.Name, Speed: speeds[i%len(speeds)], Room: room})
	}
	return out
}

// place runs a whole placement.
func (w *world) place(t testing.TB, drives []*ssdio.Drive, o PlanOptions, speeds ...float64) *Report {
	t.Helper()
	p, err := NewPlan(w.model, candidates(drives, 1<<40, speeds...), o)
	if err != nil {
		t.Fatal(err)
	}
	return w.run(t, drives, p, nil)
}

func (w *world) run(t testing.TB, drives []*ssdio.Drive, p *Plan, o *JobOptions) *Report {
	t.Helper()
	job, err := Begin(w.model, drives, o)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	r, err := job.Run(t.Context(), p, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readAll opens a placement and compares every object that it covers with the
// truth. It returns how many it read.
func (w *world) readAll(t testing.TB, drives []*ssdio.Drive) int {
	t.Helper()
	p, err := Open(w.model, drives, "")
	if err != nil {
		t.Fatal(err)
	}
	return w.readPlacement(t, p)
}

func (w *world) readPlacement(t testing.TB, p *Placement) int {
	t.Helper()
	gaps := map[ssdio.Key]bool{}
	for _, k := range p.Layout.Gaps(nil) {
		gaps[k] = true
	}
	if len(gaps) != p.Gaps {
		t.Errorf("%d gaps counted, %d there", p.Gaps, len(gaps))
	}
	set, err := ssdio.Open(p.Drives, p.Layout, &ssdio.Options{Verify: ssdio.VerifyAll()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var reqs []ssdio.Request
	for _, o := range w.model.Objects {
		if !gaps[o.Key] {
			reqs = append(reqs, ssdio.Request{Key: o.Key, Into: ssdio.Fixed(make([]byte, o.Size))})
		}
	}
	for _, r := range set.Read(t.Context(), ssdio.Demand, reqs).Wait() {
		if r.Err != nil {
			t.Fatalf("%s: %v", r.Key, r.Err)
		}
		if !bytes.Equal(r.Into.Bytes(), w.truth[r.Key]) {
			t.Fatalf("%s: wrong bytes", r.Key)
		}
	}
	return len(reqs)
}

// flip changes one bit of a file.
func flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := []byte{0}
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// packsOf lists a folder's packs.
func packsOf(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}
