package ssdio

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MarkerName is the file in a drive's folder that carries its identity.
const MarkerName = "deltafin-drive.json"

// A Marker is the content of the marker file. The identity is random: it
// belongs to the folder and its files, and moves with them when a disk is put
// into another machine or mounted elsewhere. The device's own identity stands
// beside it so that a copy of the folder on another device is noticed where it
// matters: a profile is valid for one pair of both.
type Marker struct {
	Version int    `json:"version"` // 1
	ID      string `json:"id"`      // 32 hexadecimal digits
}

const markerVersion = 1

// identify reads the folder's marker or writes one.
func identify(path string, dev Device, readOnly bool) (id string, marked bool, err error) {
	m, err := readMarker(path)
	if err == nil {
		return m.ID, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if !readOnly {
		m, err = writeMarker(path)
		if err == nil {
			return m.ID, true, nil
		}
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return "", false, fmt.Errorf("drive %s: write marker: %w", path, err)
		}
	}
	// Nothing can be written here: what the device says and where on it the
	// folder lies is the best identity there is.
	h := sha256.Sum256([]byte("deltafin drive\x00" + dev.ID + "\x00" + placeOn(path)))
	return hex.EncodeToString(h[:16]), false, nil
}

// placeOn is the folder's path from the root of its file system on, so that the
// mount point does not matter.
func placeOn(path string) string {
	root := path
	for {
		up := filepath.Dir(root)
		if up == root {
			break
		}
		a, errA := deviceOf(root)
		b, errB := deviceOf(up)
		if errA != nil || errB != nil || a.Number != b.Number {
			break
		}
		root = up
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

func readMarker(path string) (Marker, error) {
	name := filepath.Join(path, MarkerName)
	text, err := os.ReadFile(name)
	if err != nil {
		return Marker{}, fmt.Errorf("drive %s: %w", path, err)
	}
	var m Marker
	if err := json.Unmarshal(text, &m); err != nil {
		return Marker{}, fmt.Errorf("%s: %w: %w; remove the file to give the drive a new identity", name, ErrMarker, err)
	}
	if raw, err := hex.DecodeString(m.ID); err != nil || len(raw) != 16 {
		return Marker{}, fmt.Errorf("%s: %w: id %q is not 32 hexadecimal digits; remove the file to give the drive a new identity", name, ErrMarker, m.ID)
	}
	if m.Version != markerVersion {
		return Marker{}, fmt.Errorf("%s: %w: version %d, this program knows %d", name, ErrMarker, m.Version, markerVersion)
	}
	return m, nil
}

// writeMarker publishes a new marker under a name that appears only when it is
// complete. Of two programs that do it at once, one wins and both read its
// identity: a link to an existing name fails, unlike a rename.
func writeMarker(path string) (Marker, error) {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	m := Marker{Version: markerVersion, ID: hex.EncodeToString(raw[:])}
	text, err := json.Marshal(m)
	if err != nil {
		return Marker{}, err
	}
	tmp, err := os.CreateTemp(path, MarkerName+".new-*")
	if err != nil {
		return Marker{}, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(text, '\n'))
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return Marker{}, err
	}
	name := filepath.Join(path, MarkerName)
	if err := os.Link(tmp.Name(), name); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return readMarker(path)
		}
		// File systems without hard links (exFAT): look, then rename.
		if have, err := os.ReadFile(name); err == nil && len(bytes.TrimSpace(have)) > 0 {
			return readMarker(path)
		}
		if err := os.Rename(tmp.Name(), name); err != nil {
			return Marker{}, err
		}
	}
	return readMarker(path)
}
