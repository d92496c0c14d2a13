package ssdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Profile is what was measured of a drive: its ceiling against read size and
// queue depth. It is stored as a small file in a folder the caller chooses, one
// for each drive identity.
type Profile struct {
	Version  int       `json:"version"` // profileVersion
	Drive    string    `json:"drive"`   // Drive.ID
	Device   string    `json:"device"`  // Device.ID
	Emulated string    `json:"emulated,omitempty"`
	Measured time.Time `json:"measured"`
	// Direct is false if the figures are those of the page cache.
	Direct bool `json:"direct"`
	// Points is the whole matrix, sizes outer, depths inner.
	Points []Point `json:"points"`
	// Best is the smallest depth and size that reach 97 % of the fastest point.
	Best Point `json:"best"`
	// Together is the drive's rate in bytes per second while all drives in
	// Company were read at once; 0 if it was measured alone. Where it is well
	// below Best.Rate the drives share a hub.
	Together float64  `json:"together,omitempty"`
	Company  []string `json:"company,omitempty"` // identities of the other drives
}

// A Point is one cell of the matrix.
type Point struct {
	Size  int           `json:"size"`  // bytes of one read
	Depth int           `json:"depth"` // reads at once
	Rate  float64       `json:"rate"`  // bytes per second
	P50   time.Duration `json:"p50"`   // of one read, nanoseconds
	P99   time.Duration `json:"p99"`
}

const profileVersion = 1

// profileFile is the stored form: the checksum covers the bytes of the profile
// as they stand in the file.
type profileFile struct {
	Sum     string          `json:"crc32c"` // 8 hexadecimal digits
	Profile json.RawMessage `json:"profile"`
}

func profilePath(dir, drive string) string {
	return filepath.Join(dir, "drive-"+drive+".json")
}

// Save stores the profile in dir, which is made if need be. It appears under
// its name only when it is complete on the device.
func (p *Profile) Save(dir string) error {
	p.Version = profileVersion
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("profile of drive %s: %w", p.Drive, err)
	}
	text, err := json.MarshalIndent(profileFile{Sum: fmt.Sprintf("%08x", Sum(body)), Profile: body}, "", " ")
	if err != nil {
		return fmt.Errorf("profile of drive %s: %w", p.Drive, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("profile of drive %s: %w", p.Drive, err)
	}
	tmp, err := os.CreateTemp(dir, "drive-*.new")
	if err != nil {
		return fmt.Errorf("profile of drive %s: %w", p.Drive, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(text, '\n'))
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("profile of drive %s: %w", p.Drive, err)
	}
	if err := os.Rename(tmp.Name(), profilePath(dir, p.Drive)); err != nil {
		return fmt.Errorf("profile of drive %s: %w", p.Drive, err)
	}
	return nil
}

// LoadProfile reads the stored profile of a drive and checks that it is whole,
// of this drive on this device under this emulation, and measured within maxAge
// before now (0: any age). The error wraps fs.ErrNotExist, ErrProfileDamaged,
// ErrProfileForeign or ErrProfileStale; all of them mean: measure again.
func LoadProfile(dir string, d *Drive, maxAge time.Duration, now time.Time) (*Profile, error) {
	name := profilePath(dir, d.ID)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("profile of drive %s: %w", d.Name, err)
	}
	var f profileFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrProfileDamaged, err)
	}
	// Indentation is for people; the sum covers the compact form.
	var body bytes.Buffer
	if err := json.Compact(&body, f.Profile); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrProfileDamaged, err)
	}
	if got := fmt.Sprintf("%08x", Sum(body.Bytes())); got != f.Sum {
		return nil, fmt.Errorf("%s: %w: checksum %s, stored %s", name, ErrProfileDamaged, got, f.Sum)
	}
	p := &Profile{}
	if err := json.Unmarshal(f.Profile, p); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrProfileDamaged, err)
	}
	switch {
	case p.Version != profileVersion:
		return nil, fmt.Errorf("%s: version %d, this program knows %d: %w", name, p.Version, profileVersion, ErrProfileForeign)
	case p.Drive != d.ID || p.Device != d.Device.ID || p.Emulated != d.Emulated:
		return nil, fmt.Errorf("%s: measured on drive %s, device %s, emulated %q; this is %s, %s, %q: %w",
			name, p.Drive, p.Device, p.Emulated, d.ID, d.Device.ID, d.Emulated, ErrProfileForeign)
	case p.Best.Rate <= 0 || p.Best.Size <= 0 || p.Best.Depth <= 0:
		return nil, fmt.Errorf("%s: %w: best point %+v", name, ErrProfileDamaged, p.Best)
	case maxAge > 0 && (now.Sub(p.Measured) > maxAge || p.Measured.After(now.Add(time.Minute))):
		return nil, fmt.Errorf("%s: measured %s, %s allows %s: %w", name, p.Measured.Format(time.RFC3339), d.Name, maxAge, ErrProfileStale)
	}
	return p, nil
}
