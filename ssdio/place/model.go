package place

import (
	"encoding/hex"
	"fmt"
	"io/fs"

	"deltafin/ssdio"
)

// A Model says what is to be placed: the objects (experts), in the order in
// which they are to lie on the drives, and where their bytes are now.
type Model struct {
	// Fingerprint identifies the model: 64 hexadecimal digits.
	Fingerprint string
	// Dir is the folder of the files. They are only ever read.
	Dir string
	// Objects is every object once.
	Objects []Object
}

// An Object is one object of the model.
type Object struct {
	Key  ssdio.Key
	Size int64 // bytes
	// Extents are the object's bytes in their order, back to back. In the
	// official files it is one for each expert.
	Extents []Extent
}

// An Extent is a range of bytes of one of the model's files.
type Extent struct {
	File           string // relative to Model.Dir, slash-separated
	Offset, Length int64
}

// check says what is wrong with a model's description.
func (m *Model) check() error {
	if _, err := parsePrint(m.Fingerprint); err != nil {
		return err
	}
	if len(m.Objects) == 0 {
		return fmt.Errorf("the model has no objects to place: %w", ErrModel)
	}
	seen := make(map[ssdio.Key]bool, len(m.Objects))
	for i := range m.Objects {
		o := &m.Objects[i]
		if seen[o.Key] {
			return fmt.Errorf("%s is named twice: %w", o.Key, ErrModel)
		}
		seen[o.Key] = true
		sum := int64(0)
		for _, e := range o.Extents {
			if !fs.ValidPath(e.File) || e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length < 0 {
				return fmt.Errorf("%s: extent %+v: %w", o.Key, e, ErrModel)
			}
			sum += e.Length
		}
		if o.Size <= 0 || o.Size > maxObject || sum != o.Size {
			return fmt.Errorf("%s: %d bytes in extents of %d: %w", o.Key, o.Size, sum, ErrModel)
		}
	}
	return nil
}

// maxObject bounds the size of an object: block numbers must fit 31 bits with
// room for the arithmetic of the cut.
const maxObject = 1 << 40

// bytes is the size of all objects together.
func (m *Model) bytes() int64 {
	n := int64(0)
	for i := range m.Objects {
		n += m.Objects[i].Size
	}
	return n
}

// inPlace says where an object's bytes can be read without a copy: a holding
// must be one range of one file. ok is false if its extents are scattered.
func (o *Object) inPlace() (file string, off int64, ok bool) {
	first := o.Extents[0]
	at := first.Offset
	for _, e := range o.Extents {
		if e.File != first.File || e.Offset != at {
			return "", 0, false
		}
		at += e.Length
	}
	return first.File, first.Offset, true
}

// fingerprint is a model's fingerprint as it stands in files.
type fingerprint [32]byte

func (f fingerprint) String() string { return hex.EncodeToString(f[:]) }

func parsePrint(text string) (f fingerprint, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(f) {
		return f, fmt.Errorf("fingerprint %q is not 64 hexadecimal digits: %w", text, ErrModel)
	}
	return fingerprint(raw), nil
}

// driveID is a drive's identity as it stands in files.
type driveID [16]byte

func (d driveID) String() string { return hex.EncodeToString(d[:]) }

func parseID(text string) (d driveID, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d, fmt.Errorf("drive identity %q is not 32 hexadecimal digits: %w", text, ErrPlan)
	}
	return driveID(raw), nil
}
