package ssdio

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHistogramBuckets(t *testing.T) {
	for i := range histBuckets {
		if got := bucketOf(bucketFloor(i)); got != i {
			t.Fatalf("bucket %d begins at %v, which is in bucket %d", i, bucketFloor(i), got)
		}
		if i > histSub && float64(bucketFloor(i+1)) > 1.126*float64(bucketFloor(i)) {
			t.Fatalf("bucket %d reaches from %v to %v", i, bucketFloor(i), bucketFloor(i+1))
		}
	}
	if bucketOf(-1) != 0 || bucketOf(time.Hour) != histBuckets-1 {
		t.Error("latencies out of range are not kept in the outer buckets")
	}
	var h Histogram
	if h.Quantile(0.99) != 0 || h.Worst() != 0 {
		t.Error("an empty histogram has latencies")
	}
	for i := range 100 {
		h[bucketOf(time.Duration(i+1)*time.Millisecond)]++
	}
	for q, want := range map[float64]time.Duration{0.5: 50 * time.Millisecond, 0.98: 99 * time.Millisecond} {
		if got := h.Quantile(q); got < want || float64(got) > 1.13*float64(want) {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestServiceRateFollowsTheDrive(t *testing.T) {
	var s service
	s.prior(1e9, time.Millisecond)
	now := time.Duration(0)
	run := func(rate float64, n int) {
		s.advance(now)
		s.busy = true
		for range n {
			now += time.Duration(1e6 / rate * 1e9)
			s.advance(now)
			s.bytes += 1e6
		}
		s.busy = false
	}
	run(3e9, 3000)
	if r := s.rate(); r < 2.9e9 || r > 3.1e9 {
		t.Errorf("rate %.3g after a second at 3e9", r)
	}
	run(1e9, 500)
	if r := s.rate(); r < 0.95e9 || r > 1.15e9 {
		t.Errorf("rate %.3g half a second after it fell to 1e9", r)
	}
	now += time.Hour // idle time says nothing
	if r := s.pending(now, 0); r < 0.95e9 {
		t.Errorf("rate %.3g after an idle hour", r)
	}
	s.advance(now)
	s.busy = true
	if r := s.pending(now+time.Second, 4e6); r > 2e8 {
		t.Errorf("rate %.3g of a drive that has been silent for a second", r)
	}
}

func TestMeterTellsTheLastSecond(t *testing.T) {
	var m meter
	now := time.Duration(0)
	for range 500 {
		m.add(1e6, now)
		now += 10 * time.Millisecond
	}
	if r := m.rate(now); r < 95e6 || r > 105e6 {
		t.Errorf("rate %.3g, want 1e8", r)
	}
	if r := m.rate(now + 2*time.Second); r != 0 {
		t.Errorf("rate %.3g two seconds after the last byte", r)
	}
}

func TestDrivesAreRecognised(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenDrive(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	moved := dir + "-elsewhere"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	b, err := OpenDrive(moved, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.ID != b.ID || !a.Marked || len(a.ID) != 32 {
		t.Errorf("identity %q marked %v, after the move %q", a.ID, a.Marked, b.ID)
	}
	if err := a.present(); err == nil {
		t.Error("a folder that moved away is present")
	}
	c, err := OpenDrive(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.ID == a.ID {
		t.Error("two folders have one identity")
	}
	if a.Device.Number != c.Device.Number || a.Device.ID != c.Device.ID || a.Device.ID == "" {
		t.Errorf("two folders on one device: %+v and %+v", a.Device, c.Device)
	}
	plain := t.TempDir()
	d, err := OpenDrive(plain, &DriveOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := OpenDrive(plain, &DriveOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(plain); len(left) != 0 || d.Marked || d.ID != e.ID || len(d.ID) != 32 {
		t.Errorf("read-only: left %v, marked %v, identities %q %q", left, d.Marked, d.ID, e.ID)
	}
	if free, total, err := d.Space(); err != nil || free <= 0 || total < free {
		t.Errorf("space %d of %d: %v", free, total, err)
	}
}

func TestDamagedMarkers(t *testing.T) {
	for _, text := range []string{"", "{", `{"version":1,"id":"zz"}`, `{"version":2,"id":"00112233445566778899aabbccddeeff"}`, `{"version":1}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, MarkerName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDrive(dir, nil); !errors.Is(err, ErrMarker) {
			t.Errorf("marker %q: %v", text, err)
		}
	}
	if _, err := OpenDrive(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestProfilesAreStoredAndDistrusted(t *testing.T) {
	d, err := OpenDrive(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	if _, err := LoadProfile(state, d, 0, now); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no profile: %v", err)
	}
	p := &Profile{Drive: d.ID, Device: d.Device.ID, Measured: now, Direct: true, Best: Point{Size: 1 << 20, Depth: 4, Rate: 7e9}}
	if err := p.Save(state); err != nil {
		t.Fatal(err)
	}
	got, err := LoadProfile(state, d, time.Hour, now.Add(time.Minute))
	if err != nil || got.Best != p.Best || !got.Measured.Equal(now) {
		t.Errorf("loaded %+v, %v", got, err)
	}
	if _, err := LoadProfile(state, d, time.Hour, now.Add(2*time.Hour)); !errors.Is(err, ErrProfileStale) {
		t.Errorf("old: %v", err)
	}
	if _, err := LoadProfile(state, d, time.Hour, now.Add(-2*time.Hour)); !errors.Is(err, ErrProfileStale) {
		t.Errorf("from the future: %v", err)
	}
	other := *d
	other.Device.ID = "another"
	if _, err := LoadProfile(state, &other, 0, now); !errors.Is(err, ErrProfileForeign) {
		t.Errorf("another device: %v", err)
	}
	name := profilePath(state, d.ID)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", strings.Replace(string(text), "7000000000", "9000000000", 1)} {
		if err := os.WriteFile(name, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadProfile(state, d, 0, now); !errors.Is(err, ErrProfileDamaged) {
			t.Errorf("damaged: %v", err)
		}
	}
}

func TestArenaSlots(t *testing.T) {
	a, err := NewArena(10_000, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	a.Populate()
	seen := map[int]bool{}
	var slots []*Slot
	for range 3 {
		s := a.Get()
		slots = append(slots, s)
		seen[s.Index()] = true
		b := s.Buffer(123, 10_000)
		if addressOf(b.Bytes())%maxAlign != 123 {
			t.Errorf("buffer at residue %d", addressOf(b.Bytes())%maxAlign)
		}
		for i := range b.Bytes() {
			b.Bytes()[i] = byte(s.Index())
		}
	}
	if addressOf(a.mem)%hugePage != 0 {
		t.Error("the arena does not begin on a large page")
	}
	if a.Get() != nil || len(seen) != 3 {
		t.Error("slots are given twice")
	}
	for _, s := range slots {
		for _, c := range s.Buffer(123, 10_000).Bytes() {
			if c != byte(s.Index()) {
				t.Fatal("slots overlap")
			}
		}
	}
	if err := a.Close(); !errors.Is(err, ErrArenaBusy) {
		t.Errorf("closed while in use: %v", err)
	}
	for _, s := range slots {
		s.Free()
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range [][3]int{{0, 1, 0}, {1, 0, 0}, {1, 1, -1}, {1 << 40, 1 << 40, 0}} {
		if _, err := NewArena(bad[0], bad[1], bad[2]); !errors.Is(err, ErrRange) {
			t.Errorf("arena %v: %v", bad, err)
		}
	}
}

func TestLayoutRefusesContradictions(t *testing.T) {
	var b Builder
	key := Key{Layer: 1, Expert: 2}
	file, err := b.File(0, "f", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Object(key, BlockSize+5, []uint32{1, 2}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want error }{
		"other size":         {b.Object(key, BlockSize+6, nil), ErrConflict},
		"other sum":          {b.Object(key, BlockSize+5, []uint32{1, 3}), ErrConflict},
		"too few sums":       {b.Object(key, BlockSize+5, []uint32{1}), ErrRange},
		"other block sum":    {b.BlockSum(key, 0, 9), ErrConflict},
		"no such block":      {b.BlockSum(key, 2, 9), ErrRange},
		"empty object":       {b.Object(Key{}, 0, nil), ErrRange},
		"unknown object":     {b.Hold(Holding{Key: Key{Layer: 7}, To: 1}), ErrUnknownKey},
		"not a block":        {b.Hold(Holding{Key: key, From: 5, To: BlockSize, File: file}), ErrRange},
		"beyond the object":  {b.Hold(Holding{Key: key, To: 2 * BlockSize, File: file}), ErrRange},
		"beyond the file":    {b.Hold(Holding{Key: key, To: BlockSize, File: file, Offset: 1 << 20}), ErrRange},
		"no such file":       {b.Hold(Holding{Key: key, To: BlockSize, File: 3}), ErrRange},
		"same again is fine": {b.Object(key, BlockSize+5, []uint32{1, 2}), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if err := b.Hold(Holding{Key: key, From: BlockSize, To: BlockSize + 5, File: file, Offset: 4097}); err != nil {
		t.Fatal(err)
	}
	l := b.Layout()
	if gaps := l.Gaps(nil); len(gaps) != 1 || gaps[0] != key {
		t.Errorf("gaps %v", gaps)
	}
	if l.Residue(key) != 1 || l.Len() != 1 {
		t.Errorf("residue %d of %d objects", l.Residue(key), l.Len())
	}
	if sum, ok := l.Sum(key, 1); !ok || sum != 2 {
		t.Errorf("sum %d %v", sum, ok)
	}
}

// TestLayoutChecksMemory: bytes in memory are compared block by block with the sums
// that are known; what is not a whole object is refused.
func TestLayoutChecksMemory(t *testing.T) {
	key, data := Key{Layer: 2, Expert: 3}, bytes.Repeat([]byte{7}, 2*BlockSize+9)
	var b Builder
	sums := []uint32{Sum(data[:BlockSize]), Sum(data[BlockSize : 2*BlockSize]), Sum(data[2*BlockSize:])}
	if err := b.Object(key, int64(len(data)), sums); err != nil {
		t.Fatal(err)
	}
	if err := b.Object(Key{Layer: 3}, 5, nil); err != nil {
		t.Fatal(err)
	}
	l := b.Layout()
	check := func(key Key, data []byte, want int, is error) {
		t.Helper()
		if got, err := l.Check(key, data); got != want || !errors.Is(err, is) {
			t.Errorf("%s, %d bytes: block %d, %v; want %d, %v", key, len(data), got, err, want, is)
		}
	}
	check(key, data, -1, nil)
	for _, at := range []int{0, BlockSize - 1, BlockSize, len(data) - 1} {
		data[at] ^= 1
		check(key, data, at/BlockSize, nil)
		data[at] ^= 1
	}
	check(key, data[1:], -1, ErrRange)
	check(Key{Layer: 9}, data, -1, ErrUnknownKey)
	check(Key{Layer: 3}, data[:5], -1, nil) // nobody knows its sum
}

func TestCeiling(t *testing.T) {
	build := func(parts ...[2]int64) *Layout {
		var b Builder
		_ = b.Object(Key{}, 10*BlockSize, nil)
		for d, p := range parts {
			f, _ := b.File(d, "f", 10*BlockSize)
			_ = b.Hold(Holding{From: p[0] * BlockSize, To: p[1] * BlockSize, File: f})
		}
		return b.Layout()
	}
	for _, c := range []struct {
		l     *Layout
		rates []float64
		want  float64
	}{
		{build([2]int64{0, 10}, [2]int64{0, 10}), []float64{3, 1}, 4},
		{build([2]int64{0, 5}, [2]int64{5, 10}), []float64{3, 1}, 2},
		{build([2]int64{0, 8}, [2]int64{5, 10}), []float64{3, 1}, 4},
		{build([2]int64{0, 8}, [2]int64{5, 10}), []float64{9, 1}, 5},
		{build([2]int64{0, 8}, [2]int64{5, 10}), []float64{9, 0}, 0},
		{build([2]int64{0, 10}, [2]int64{5, 10}), []float64{9, 0}, 9},
	} {
		if got := c.l.Ceiling(c.rates); got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("rates %v: ceiling %v, want %v", c.rates, got, c.want)
		}
	}
	var b Builder
	rates := make([]float64, 32)
	_ = b.Object(Key{}, 1000*BlockSize, nil)
	for d := range rates {
		rates[d] = float64(1 + d%3)
		f, _ := b.File(d, "f", 1000*BlockSize)
		_ = b.Hold(Holding{To: 1000 * BlockSize, File: f})
	}
	if got := b.Layout().Ceiling(rates); got < 60 || got > 63 { // the sum is 63
		t.Errorf("32 drives: ceiling %v", got)
	}
}

func TestNames(t *testing.T) {
	for want, k := range map[string]Key{
		"layer 3 expert 17": {3, 17}, "layer 3 part 0": PartKey(3, 0), "model part 2": PartKey(-1, 2),
	} {
		if k.String() != want {
			t.Errorf("%v is called %q, want %q", [2]int32{k.Layer, k.Expert}, k.String(), want)
		}
	}
	e := &ReadError{Key: Key{1, 2}, Drive: "d", File: "f", Offset: 5, Length: 6, Tries: 1, Err: ErrChecksum}
	if want := "layer 1 expert 2: cannot read 6 bytes at offset 5 of f on drive d after 1 try: checksum does not match"; e.Error() != want {
		t.Errorf("%q", e.Error())
	}
}

// BenchmarkSum is the checking throughput of one core.
func BenchmarkSum(b *testing.B) {
	p := make([]byte, BlockSize)
	b.SetBytes(BlockSize)
	for b.Loop() {
		Sum(p)
	}
}
