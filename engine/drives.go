package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
	"deltafin/ssdio/place"
)

// openDrives opens the drives and finds what they hold of the model.
func (s *stream) openDrives(ck *checkpoint.Checkpoint, o Options) ([]*ssdio.Drive, *ssdio.Layout, error) {
	if ck.Path() == "" {
		return s.openInMemory(ck, o)
	}
	dir, err := filepath.Abs(ck.Path())
	if err != nil {
		return nil, nil, err
	}
	m := *s.cat.Model()
	m.Dir = dir
	var drives []*ssdio.Drive
	for _, text := range o.Drives {
		d, err := s.openDrive(text, o.DriveState, nil)
		if err != nil {
			return nil, nil, err
		}
		for i, other := range drives {
			if other.ID == d.ID {
				return nil, nil, &UsageError{Field: "drives", Reason: fmt.Sprintf("%s and %s are the same drive; name each once", o.Drives[i], text)}
			}
		}
		drives = append(drives, d)
	}
	if len(drives) == 0 {
		d, err := ssdio.OpenDrive(dir, &ssdio.DriveOptions{ReadOnly: o.DriveState != ""})
		if err != nil {
			return nil, nil, err
		}
		drives = append(drives, profiled(d, o.DriveState))
	}
	name(drives)
	p, err := place.Open(&m, drives, o.DriveState)
	if err != nil {
		return nil, nil, err
	}
	if p.Gaps > 0 {
		return nil, nil, gapsError(p)
	}
	s.placed, s.record = p, o.DriveState != ""
	return p.Drives, p.Layout, nil
}

// gapsError says which drives are missing where some experts are nowhere.
func gapsError(p *place.Placement) error {
	why := "the drives hold only a part of the model"
	for i, s := range p.Missing {
		if i == 0 {
			why += "; not given but needed:"
		}
		why += " " + s.Name
	}
	return fmt.Errorf("%d of %d experts are not complete: %s: %w", p.Gaps, p.Layout.Len(), why, ssdio.ErrNoHolder)
}

// openDrive opens one drive by its specification. Where there is another folder
// for records, nothing is written to it.
func (s *stream) openDrive(text, state string, files ssdio.FS) (*ssdio.Drive, error) {
	spec, err := emulate.ParseSpec(text)
	if err != nil {
		return nil, &UsageError{Field: "drives", Reason: err.Error()}
	}
	if spec.Path, err = filepath.Abs(spec.Path); err != nil {
		return nil, err
	}
	d, err := s.fleet.OpenSpec(spec, &ssdio.DriveOptions{ReadOnly: state != "" || files != nil, FS: files})
	if err != nil {
		return nil, err
	}
	return profiled(d, state), nil
}

// profiled adds what was measured of a drive, if there is anything valid. Without
// it a drive is driven with defaults; the results are the same.
func profiled(d *ssdio.Drive, state string) *ssdio.Drive {
	if state == "" || d.Profile != nil {
		return d
	}
	if p, err := ssdio.LoadProfile(state, d, 0, time.Now()); err == nil {
		d.Profile = p
	}
	return d
}

// name tells drives apart in reports: folders on one device by their names, equal
// names by number.
func name(drives []*ssdio.Drive) {
	count := map[string]int{}
	for _, d := range drives {
		count[d.Name]++
	}
	taken := map[string]int{}
	for _, d := range drives {
		if count[d.Name] > 1 {
			d.Name = filepath.Base(d.Path)
		}
		if taken[d.Name]++; taken[d.Name] > 1 {
			d.Name = fmt.Sprintf("%s-%d", d.Name, taken[d.Name])
		}
	}
}

// openInMemory puts the demonstration model on every drive: its files lie in the
// program, and reads of them take as long as the drive's emulation says.
func (s *stream) openInMemory(ck *checkpoint.Checkpoint, o Options) ([]*ssdio.Drive, *ssdio.Layout, error) {
	files, ok := ck.FS().(checkpoint.InPlace)
	if !ok {
		return nil, nil, errors.New("a model in memory has no files to read experts from: open it from a folder")
	}
	if o.int8 != nil {
		data, err := o.int8.Load()
		if err != nil {
			return nil, nil, err
		}
		files = withFile{files, filepath.Base(o.int8.Path()), data}
	}
	s.files = files
	specs := o.Drives
	if len(specs) == 0 {
		specs = []string{os.TempDir() + ",name=program"}
	}
	var drives []*ssdio.Drive
	for _, text := range specs {
		d, err := s.openDrive(text, "", memoryFS{files})
		if err != nil {
			return nil, nil, err
		}
		drives = append(drives, d)
	}
	name(drives)
	layout, err := memoryLayout(s.cat.Model(), files, len(drives))
	return drives, layout, err
}

// memoryLayout states every object, with its sums, on every drive.
func memoryLayout(m *place.Model, files checkpoint.InPlace, drives int) (*ssdio.Layout, error) {
	var b ssdio.Builder
	index := make([]map[string]int, drives)
	for i := range index {
		index[i] = map[string]int{}
	}
	for _, obj := range m.Objects {
		if len(obj.Extents) != 1 {
			return nil, fmt.Errorf("%s is scattered over its file and cannot be read in place", obj.Key)
		}
		x := obj.Extents[0]
		data, err := files.Bytes(x.File)
		if err != nil {
			return nil, err
		}
		var sums []uint32
		for at := int64(0); at < obj.Size; at += ssdio.BlockSize {
			sums = append(sums, ssdio.Sum(data[x.Offset+at:x.Offset+min(at+ssdio.BlockSize, obj.Size)]))
		}
		if err := b.Object(obj.Key, obj.Size, sums); err != nil {
			return nil, err
		}
		for d := range drives {
			f, known := index[d][x.File]
			if !known {
				if f, err = b.File(d, x.File, int64(len(data))); err != nil {
					return nil, err
				}
				index[d][x.File] = f
			}
			if err := b.Hold(ssdio.Holding{Key: obj.Key, To: obj.Size, File: f, Offset: x.Offset}); err != nil {
				return nil, err
			}
		}
	}
	return b.Layout(), nil
}

// withFile is files in memory and one more.
type withFile struct {
	checkpoint.InPlace
	name string
	data []byte
}

// Bytes implements checkpoint.InPlace.
func (f withFile) Bytes(name string) ([]byte, error) {
	if name == f.name {
		return f.data, nil
	}
	return f.InPlace.Bytes(name)
}

// memoryFS is files in memory as a drive has them.
type memoryFS struct{ files checkpoint.InPlace }

// Open implements ssdio.FS.
func (m memoryFS) Open(name string) (ssdio.Source, error) {
	data, err := m.files.Bytes(name)
	return memorySource{data}, err
}

type memorySource struct{ data []byte }

// ReadInto implements ssdio.Source.
func (m memorySource) ReadInto(p []byte, off int64, _ *ssdio.Scratch) (int, error) {
	if off < 0 || off > int64(len(m.data)) || copy(p, m.data[off:]) < len(p) {
		return 0, fmt.Errorf("bytes [%d,%d) of %d: %w", off, off+int64(len(p)), len(m.data), ssdio.ErrShort)
	}
	return 0, nil
}

func (m memorySource) Size() int64        { return int64(len(m.data)) }
func (m memorySource) Align() ssdio.Align { return ssdio.Align{Offset: 1, Length: 1, Memory: 1} }
func (m memorySource) Direct() bool       { return true }
func (m memorySource) Close() error       { return nil }
