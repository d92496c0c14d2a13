package place

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/ssdio"
)

// sampleManifest is one with every kind of entry.
func sampleManifest(t testing.TB, sizes ...int) *Manifest {
	t.Helper()
	m := modelOf(sizes...)
	p, err := NewPlan(m, []Candidate{
		{ID: fmt.Sprintf("%032x", 1), Name: "left", Speed: 2e9, Room: 1 << 50},
		{ID: fmt.Sprintf("%032x", 2), Name: "right", Speed: 1e9, InPlace: true},
	}, PlanOptions{Overlap: 0.1, PackSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	k := newPacking(m, p, 0)
	var files []ManifestFile
	for i := range k.files {
		files = append(files, ManifestFile{packName(p.ID(), i), k.files[i].size, true})
	}
	man := newManifest(m.Fingerprint, p.Drives[0].ID, p, files, k)
	for i := range man.sums {
		if i%5 != 3 {
			man.setSum(i, uint32(i*2654435761))
		}
	}
	return man
}

// TestManifestSurvivesItsFile: what is written is read back, and writing that
// again gives the same bytes.
func TestManifestSurvivesItsFile(t *testing.T) {
	m := sampleManifest(t, someSizes(40)...)
	data, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseManifest("m", data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := got.encode()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("written again: %v, same bytes: %v", err, bytes.Equal(data, again))
	}
	if got.Fingerprint != m.Fingerprint || got.Drive != m.Drive || got.Plan.ID() != m.Plan.ID() || got.Bytes() != m.Bytes() || got.Objects() != m.Objects() {
		t.Errorf("read back %+v", got)
	}
	known, blocks := got.Sums()
	if wantKnown, want := m.Sums(); known != wantKnown || blocks != want || known == blocks {
		t.Errorf("%d of %d sums, want %d of %d", known, blocks, wantKnown, want)
	}
}

// TestRefusesDamagedManifests: every cut and every changed byte is noticed.
func TestRefusesDamagedManifests(t *testing.T) {
	data, err := sampleManifest(t, 5000, 300000, 1).encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		if _, err := parseManifest("m", data[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
		bad := bytes.Clone(data)
		bad[i] ^= 0x40
		if _, err := parseManifest("m", bad); !errors.Is(err, ErrDamaged) && !(errors.Is(err, ErrNewer) && i >= 8 && i < 12) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
}

// TestRefusesNewerVersions: of every kind of file, whatever else stands in it.
func TestRefusesNewerVersions(t *testing.T) {
	for _, magic := range []string{manifestMagic, packMagic, journalMagic} {
		data := append(prefix(magic, 2), "nothing that version 1 could know"...)
		var err error
		switch magic {
		case manifestMagic:
			_, err = parseManifest("x", data)
		case packMagic:
			_, err = parsePackHeader("x", data)
		case journalMagic:
			_, err = parseJournal("x", data)
		}
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 2, this program knows 1") {
			t.Errorf("%s: %v", magic, err)
		}
	}
}

// TestPackSpeaksForItself: head and table of a pack are read back without the
// manifest.
func TestPackSpeaksForItself(t *testing.T) {
	m := sampleManifest(t, someSizes(40)...)
	for i := range m.sums {
		m.setSum(i, uint32(i))
	}
	if len(m.Files) < 2 {
		t.Fatalf("%d packs, the test wants several", len(m.Files))
	}
	for f := range m.Files {
		head, err := m.packHead(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePackHeader("p", head)
		if err == nil {
			err = p.parseTable("p", head[page:])
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range m.entries {
			if int(m.entries[i].file) == f {
				want := m.entries[i]
				want.file = 0
				if p.entries[n] != want {
					t.Errorf("pack %d entry %d: %+v, want %+v", f, n, p.entries[n], want)
				}
				n++
			}
		}
		if n != p.Objects() || p.Number != f || p.Size != m.Files[f].Size || p.Fingerprint != m.Fingerprint || p.Drive != m.Drive {
			t.Errorf("pack %d says %+v", f, p)
		}
		for _, at := range []int{8, 12, 20, 50, 70, 81, 85, 90, 100, 105, 109, page, page + 9, page + 41} {
			bad := bytes.Clone(head)
			bad[at] ^= 1
			p, err := parsePackHeader("p", bad)
			if err == nil {
				err = p.parseTable("p", bad[page:])
			}
			if err == nil {
				t.Errorf("pack %d: byte %d changed and nobody noticed", f, at)
			}
		}
	}
	m.known[0] = 0
	if _, err := m.packHead(0); !errors.Is(err, ErrDamaged) {
		t.Errorf("a pack with unknown sums: %v", err)
	}
}

// TestJournalCutAnywhere: a journal cut at any byte behind its header says
// something true: the records that are whole, and no more.
func TestJournalCutAnywhere(t *testing.T) {
	man := sampleManifest(t, repeat(8, 300000)...)
	dir := t.TempDir()
	j := &journal{path: filepath.Join(dir, JournalName), print: man.Fingerprint, drive: man.Drive, plan: man.Plan, digest: 5}
	if err := j.create(osDisk{}); err != nil {
		t.Fatal(err)
	}
	if err := j.open(osDisk{}); err != nil {
		t.Fatal(err)
	}
	type mark struct {
		end            int64
		done, verified int
		sums           int
	}
	marks := []mark{{j.end, 0, 0, 0}}
	add := func(kind uint32, index int, payload []byte, m mark) {
		t.Helper()
		if err := j.append(appendRecord(nil, kind, index, payload)); err != nil {
			t.Fatal(err)
		}
		m.end = j.end
		marks = append(marks, m)
	}
	two := le.AppendUint32(le.AppendUint32(nil, 1), 2)
	add(recordDone, 0, two, mark{done: 1, sums: 2})
	add(recordDone, 1, two[:4], mark{done: 2, sums: 3})
	add(recordVerified, 0, nil, mark{done: 2, verified: 1, sums: 3})
	add(recordDone, 2, two, mark{done: 3, verified: 1, sums: 5})
	add(recordBack, 1, le.AppendUint32(nil, 0), mark{done: 1, sums: 2})
	add(recordDone, 1, two, mark{done: 2, sums: 4})
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) + 1 {
		got, err := parseJournal("j", data[:n])
		if int64(n) < marks[0].end {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut to %d bytes: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		want := marks[0]
		for _, m := range marks {
			if m.end <= int64(n) {
				want = m
			}
		}
		have := mark{got.end, got.state.done, got.state.verified, len(got.state.sums)}
		if have != want || got.torn != int64(n)-want.end {
			t.Fatalf("cut to %d bytes: %+v (torn %d), want %+v", n, have, got.torn, want)
		}
	}
	// Opening cuts the torn tail, so that what is appended counts.
	if err := os.WriteFile(j.path, data[:len(data)-3], 0o644); err != nil {
		t.Fatal(err)
	}
	if j, err = readJournal(j.path); err != nil {
		t.Fatal(err)
	}
	if err := j.open(osDisk{}); err != nil {
		t.Fatal(err)
	}
	add(recordDone, 1, two[:4], mark{})
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, err = readJournal(j.path); err != nil || j.state.done != 2 || len(j.state.sums) != 3 || j.torn != 0 {
		t.Errorf("after a torn tail: %+v, %v", j.state, err)
	}
}

func FuzzParseManifest(f *testing.F) {
	for _, sizes := range [][]int{{1}, {5000, 300000}, someSizes(9)} {
		data, err := sampleManifest(f, sizes...).encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:len(data)-4])
	}
	f.Add(prefix(manifestMagic, 1))
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum is made right, so that the fields are what is tested.
		data := le.AppendUint32(bytes.Clone(body), ssdio.Sum(body))
		m, err := parseManifest("m", data)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("accepted, but written again it differs (%v)", err)
		}
		for i := range m.entries {
			e := &m.entries[i]
			if e.from() < 0 || e.to() > e.size || e.bytes() <= 0 || e.offset+e.bytes() > m.Files[e.file].Size {
				t.Fatalf("entry %+v of file %+v", e, m.Files[e.file])
			}
		}
	})
}

func FuzzParsePack(f *testing.F) {
	m := sampleManifest(f, 5000, 300000, 1)
	for i := range m.sums {
		m.setSum(i, uint32(i))
	}
	head, err := m.packHead(0)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(head[:packHeader-4], head[page:])
	f.Fuzz(func(t *testing.T, header, table []byte) {
		if len(header) > packHeader-4 {
			header = header[:packHeader-4]
		}
		// Checksums are made right, so that the fields are what is tested.
		b := le.AppendUint32(bytes.Clone(header), ssdio.Sum(header))
		p, err := parsePackHeader("p", b)
		if err != nil {
			return
		}
		if p.parseTable("p", table) != nil {
			return
		}
		for i := range p.entries {
			if e := &p.entries[i]; e.offset < p.data || e.offset+e.bytes() > p.Size {
				t.Fatalf("entry %+v of pack %+v", e, p)
			}
		}
	})
}

func FuzzParseJournal(f *testing.F) {
	man := sampleManifest(f, repeat(4, 300000)...)
	j := &journal{print: man.Fingerprint, drive: man.Drive, plan: man.Plan}
	head, err := j.head()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(1), uint32(0), []byte{1, 2, 3, 4}, uint32(3), uint32(0), []byte{0, 0, 0, 0}, []byte("torn"))
	f.Add(uint32(1), uint32(0), []byte{1, 2, 3, 4}, uint32(2), uint32(0), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, k1, i1 uint32, p1 []byte, k2, i2 uint32, p2, tail []byte) {
		data := bytes.Clone(head)
		data = appendRecord(data, k1, int(i1), p1)
		data = appendRecord(data, k2, int(i2), p2)
		data = append(data, tail...)
		j, err := parseJournal("j", data)
		if err != nil {
			t.Fatal(err)
		}
		if j.end+j.torn != int64(len(data)) || j.state.done < 0 || j.state.verified < 0 || len(j.state.sums) < j.state.done {
			t.Fatalf("%+v", j)
		}
		if _, err := parseJournal("j", append(bytes.Clone(p1), p2...)); err == nil {
			t.Fatal("records without a header are a journal")
		}
	})
}

// BenchmarkManifestOfK3 loads the manifest of a full copy of K3's experts.
func BenchmarkManifestOfK3(b *testing.B) {
	m := modelOf(repeat(82432, 17547264)...)
	p, err := NewPlan(m, []Candidate{{ID: fmt.Sprintf("%032x", 1), Name: "d", Speed: 1e9, Room: 1 << 50}}, PlanOptions{})
	if err != nil {
		b.Fatal(err)
	}
	k := newPacking(m, p, 0)
	var files []ManifestFile
	for i := range k.files {
		files = append(files, ManifestFile{packName(p.ID(), i), k.files[i].size, true})
	}
	man := newManifest(m.Fingerprint, p.Drives[0].ID, p, files, k)
	for i := range man.sums {
		man.setSum(i, uint32(i))
	}
	data, err := man.encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := parseManifest("m", data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("layout", func(b *testing.B) {
		for b.Loop() {
			var l ssdio.Builder
			if err := man.addTo(&l, 0); err != nil {
				b.Fatal(err)
			}
			l.Layout()
		}
	})
	b.Run("plan", func(b *testing.B) {
		var drives []Candidate
		for i, s := range []float64{13.6e9, 7.1e9, 7.1e9, 5.7e9} {
			drives = append(drives, Candidate{ID: fmt.Sprintf("%032x", i+1), Speed: s, Room: m.bytes() * 6 / 10})
		}
		for b.Loop() {
			if _, err := NewPlan(m, drives, PlanOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
