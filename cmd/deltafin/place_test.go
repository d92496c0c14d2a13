package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"deltafin/engine/checkpoint"
	"deltafin/session/paths"
	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// quick keeps measuring short: what is measured does not matter here.
var quick = []string{"--point", "1ms", "--test-file", "1MiB"}

// folders makes n folders for drives and a home for the program.
func folders(t *testing.T, n int) []string {
	t.Helper()
	t.Setenv(paths.HomeVar, t.TempDir())
	out := make([]string, n)
	for i := range out {
		out[i] = filepath.Join(t.TempDir(), "drive"+string(rune('a'+i)))
		if err := os.Mkdir(out[i], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// must runs the program and fails the test unless it ends well.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := program(t, "", args...)
	if code != exitDone {
		t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

// narrow fails the test if a table is wider than a terminal. Sentences below
// tables may wrap; they have no run of spaces.
func narrow(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 && strings.Contains(line, "   ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// openPlaced opens what was placed of a model on folders and compares every
// expert with the bytes in the checkpoint.
func openPlaced(t *testing.T, model string, dirs ...string) {
	t.Helper()
	ck, err := checkpoint.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	m, err := openPlaceModel(model)
	if err != nil {
		t.Fatal(err)
	}
	set, err := openDrives(dirs)
	if err != nil {
		t.Fatal(err)
	}
	p, err := place.Open(m, set.drives, set.state)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ssdio.Open(p.Drives, p.Layout, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range m.Objects {
		o := &m.Objects[i]
		mem := make([]byte, o.Size)
		if err := r.Read(t.Context(), ssdio.Demand, []ssdio.Request{{Key: o.Key, Into: ssdio.Fixed(mem)}}).Err(); err != nil {
			t.Fatal(err)
		}
		x, err := ck.Expert(int(o.Key.Layer), int(o.Key.Expert))
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		for _, e := range o.Extents {
			for _, w := range []checkpoint.Tensor{x.W1.Weight, x.W1.Scale, x.W2.Weight, x.W2.Scale, x.W3.Weight, x.W3.Scale} {
				in := w.Offset - e.Offset
				if w.Length == 0 || filepath.Base(w.File) != e.File || in < 0 || in >= e.Length {
					continue
				}
				if string(mem[at+in:at+in+w.Length]) != string(w.Data) {
					t.Fatalf("%s: %s has other bytes", o.Key, w.Name)
				}
			}
			at += e.Length
		}
	}
}

// TestPlaceVerifyRepair: a tiny model goes onto three drives, is checked, is
// damaged, and is repaired.
func TestPlaceVerifyRepair(t *testing.T) {
	model := small(t, nil)
	dirs := folders(t, 3)
	args := append([]string{"place", "--model", model, "--reserve", "0", "--drive", dirs[0], "--drive", dirs[1] + ",limit=300MB/s", "--drive", dirs[2]}, quick...)

	out := must(t, append(args, "--dry-run")...)
	narrow(t, out)
	for _, want := range []string{"20 experts", "drivea", "together", "is emulated: limit=300000000B/s", "folders on one device"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dirs[0], "*.pack")); len(left) != 0 {
		t.Errorf("a dry run wrote %v", left)
	}
	out = must(t, args...)
	if !strings.Contains(out, "written and read back in 1 file.") || !strings.Contains(out, "the model's own files are as they were") {
		t.Errorf("report:\n%s", out)
	}
	openPlaced(t, model, dirs...)
	openPlaced(t, model, dirs[1]) // full copies: one is enough
	if out = must(t, args...); !strings.Contains(out, "hold the model already") {
		t.Errorf("the second time:\n%s", out)
	}

	out = must(t, "verify")
	narrow(t, out)
	if !strings.Contains(out, "Everything is as the manifests say.") {
		t.Errorf("verify:\n%s", out)
	}
	pack, err := filepath.Glob(filepath.Join(dirs[2], "*.pack"))
	if err != nil || len(pack) != 1 {
		t.Fatalf("%v, %v", pack, err)
	}
	if out = must(t, "verify", pack[0]); !strings.Contains(out, "good; 20 experts") {
		t.Errorf("verify of a pack:\n%s", out)
	}
	data, err := os.ReadFile(pack[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-4096] ^= 1 // the last stripe fills less than a page
	if err := os.WriteFile(pack[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, _ := program(t, "", "verify")
	if code != exitDrive || !strings.Contains(out, "deltafin verify --repair") || !strings.Contains(out, "layer 4 expert") {
		t.Errorf("verify of a bad block: exit %d\n%s", code, out)
	}
	if code, _, errs := program(t, "", "verify", pack[0]); code != exitDrive || !strings.Contains(errs, "is bad at layer 4 expert") {
		t.Errorf("verify of a bad pack: exit %d\n%s", code, errs)
	}
	var r verifyReport
	if err := json.Unmarshal([]byte(must(t, "verify", "--repair", "--json", "--drive", dirs[2], "--model", model)), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Good || len(r.Drives) != 1 || r.Drives[0].Repaired != 1 || r.Drives[0].Problems[0].From != "the model's own files" {
		t.Errorf("repair: %+v", r)
	}
	openPlaced(t, model, dirs[2])
}

// TestPlaceInTheModelsOwnFolder: the files serve where they are, alone or with
// other drives.
func TestPlaceInTheModelsOwnFolder(t *testing.T) {
	model := small(t, nil)
	dirs := append(folders(t, 1), model)
	// With room for full copies every drive holds something, however its speed was
	// measured on a busy machine.
	args := append([]string{"place", "--model", model, "--reserve", "0", "--drive", dirs[0], "--drive", model}, quick...)
	out := must(t, append(args, "--dry-run")...)
	narrow(t, out)
	if !strings.Contains(out, "in place") {
		t.Errorf("plan:\n%s", out)
	}
	var r placeReport
	if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Drives) != 2 || r.Drives[0].InPlace || !r.Drives[1].InPlace || r.Result == nil || r.Result.Drives[1].Written != 0 ||
		r.Result.Drives[1].Sums != "computed while placing" || r.Result.Drives[0].Written == 0 || r.Objects != 20 || r.Found != "nothing" {
		t.Errorf("report %+v, result %+v", r, r.Result)
	}
	openPlaced(t, model, dirs...)
	openPlaced(t, model, model)
}

// TestPlaceGoldenModels: the checked-in models, of a few KB per expert.
func TestPlaceGoldenModels(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		t.Run(name, func(t *testing.T) {
			model := filepath.Join("..", "..", "engine", "testdata", "golden", name)
			if _, err := os.Stat(model); err != nil {
				t.Skip(err)
			}
			dirs := folders(t, 2)
			must(t, append([]string{"place", "--model", model, "--reserve", "0", "--overlap", "none", "--drive", dirs[0], "--drive", dirs[1]}, quick...)...)
			openPlaced(t, model, dirs...)
		})
	}
}

// TestPlaceRefuses: what cannot be is said with its reason; drive failures are
// drive errors.
func TestPlaceRefuses(t *testing.T) {
	model, other := small(t, nil), small(t, func(c *checkpoint.Config) { c.Experts = 6 })
	dirs := folders(t, 2)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"place"}, exitUsage, "name the drives"},
		{[]string{"place", "--drive", dirs[0]}, exitUsage, "--model DIR"},
		{[]string{"place", "--model", model, "--drive", filepath.Join(dirs[0], "no")}, exitUsage, "is no folder"},
		{[]string{"place", "--model", model, "--drive", dirs[0], "--drive", dirs[0]}, exitUsage, "the same drive"},
		{[]string{"place", "--model", model, "--drive", dirs[0], "--overlap", "much"}, exitUsage, "--overlap"},
		{[]string{"place", "--model", model, "--drive", dirs[0], "--reserve", "some"}, exitUsage, "--reserve"},
		{[]string{"place", "--model", model, "--drive", dirs[0] + ",limit=fast"}, exitUsage, "limit=fast"},
		{[]string{"place", "--model", dirs[0], "--drive", dirs[0]}, exitNoModel, "config.json"},
		{[]string{"verify"}, exitUsage, "no placement is known"},
		{[]string{"verify", "nothing.pack"}, exitUsage, "is no file"},
		{[]string{"verify", "x", "--repair"}, exitUsage, "checked alone"},
		{[]string{"drives"}, exitUsage, "name at least one folder"},
		{[]string{"bench", "drives", "--only", "all"}, exitUsage, "real, emulated and cost"},
		{[]string{"bench", "drives", "--experts", "1", "--expert-size", "1MiB"}, exitUsage, "at least 8 MiB"},
		{[]string{"bench", "drives", "--limits", "1GB/s"}, exitUsage, "at least two"},
	} {
		if code, _, errs := program(t, "", c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.want, errs)
		}
	}
	// Far too little room: numbers, and nothing written.
	code, _, errs := program(t, "", append([]string{"place", "--model", model, "--drive", dirs[0], "--reserve", "900PB"}, quick...)...)
	if code != exitDrive || !strings.Contains(errs, "the drives are too small: the model needs") || !strings.Contains(errs, "0 B") {
		t.Errorf("no room: exit %d\n%s", code, errs)
	}
	// Another model on the drive.
	must(t, append([]string{"place", "--model", model, "--drive", dirs[0], "--reserve", "0"}, quick...)...)
	code, _, errs = program(t, "", append([]string{"place", "--model", other, "--drive", dirs[0], "--reserve", "0"}, quick...)...)
	if code != exitDrive || !strings.Contains(errs, "belongs to the model with fingerprint") {
		t.Errorf("another model: exit %d\n%s", code, errs)
	}
	must(t, append([]string{"place", "--model", other, "--drive", dirs[0], "--reserve", "0", "--replace"}, quick...)...)
	openPlaced(t, other, dirs[0])
	if _, _, errs = program(t, "", "verify", "--drive", dirs[1]); !strings.Contains(errs, "use deltafin place first") {
		t.Errorf("verify of an empty drive:\n%s", errs)
	}
	var drive *driveError
	if err := ofDrive(&place.RoomError{}); !errors.As(err, &drive) {
		t.Errorf("%T is no drive error", err)
	}
	if err := ofDrive(usage("no")); errors.As(err, &drive) {
		t.Error("a usage error became a drive error")
	}
}

// TestDrivesReport: measured, stored, and read back; the table fits 80 columns.
func TestDrivesReport(t *testing.T) {
	dirs := folders(t, 2)
	args := append([]string{"drives", dirs[0], dirs[1] + ",limit=50MB/s,latency=1ms"}, quick...)
	var first, second drivesReport
	if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &first); err != nil {
		t.Fatal(err)
	}
	if !first.Measured || len(first.Drives) != 2 || first.Drives[0].Profile.Best.Rate <= 0 || first.Together <= 0 || first.Drives[1].Profile.Emulated == "" {
		t.Errorf("%+v", first)
	}
	if r := first.Drives[1].Profile.Best.Rate; r > 60e6 {
		t.Errorf("a drive limited to 50 MB/s gives %.0f", r)
	}
	if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &second); err != nil {
		t.Fatal(err)
	}
	if second.Measured || second.Drives[0].Profile.Best != first.Drives[0].Profile.Best {
		t.Errorf("the second time %+v, the first %+v", second.Drives[0].Profile.Best, first.Drives[0].Profile.Best)
	}
	out := must(t, args...)
	narrow(t, out)
	if !strings.Contains(out, "--again measures anew") || !strings.Contains(out, "% of their sum") {
		t.Errorf("table:\n%s", out)
	}
	left, err := filepath.Glob(filepath.Join(dirs[0], "*.tmp"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestBenchDrivesSpeaksTheLanguage: one object with the agreed names.
func TestBenchDrivesSpeaksTheLanguage(t *testing.T) {
	dir := t.TempDir()
	small := []string{"--experts", "8", "--expert-size", "1MiB", "--time", "100ms", "--only", "cost"}
	var r benchReport
	if err := json.Unmarshal([]byte(must(t, append([]string{"bench", "drives", dir, "--json"}, small...)...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Bench != "drives" || r.Version == "" || r.Machine.CPUs < 1 || len(r.Results) < 3 || r.Config["experts"] != 8.0 {
		t.Errorf("%+v", r)
	}
	for _, row := range r.Results {
		// A busy machine may leave no time for a figure; the row then says so.
		if row.Name == "" || row.Unit == "" || !(row.Value > 0) && !strings.Contains(row.Note, "time was too short") {
			t.Errorf("%+v", row)
		}
	}
	narrow(t, must(t, append([]string{"bench", "drives", dir}, small...)...))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
