package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// The sums of the trunk's blocks are kept between runs, as soon as all are known:
// what was read once is checked in every later run. The file is, little-endian:
//
//	"DFTSUMS1"            magic and version
//	[64]byte              fingerprint of the model, hexadecimal
//	u32                   n, blocks of all objects in the catalog's order
//	[n]u32                CRC32C of each
//	u32                   CRC32C of everything before

const sumsMagic = "DFTSUMS1"

// sumsHead is the bytes before the sums.
const sumsHead = len(sumsMagic) + 64 + 4

var errSums = errors.New("not a whole record of checksums: remove it")

func sumsPath(state, fingerprint string) string {
	return filepath.Join(state, "trunk-"+fingerprint[:min(len(fingerprint), 32)]+".sums")
}

// blocksOf counts the blocks of all objects.
func blocksOf(m *place.Model) int {
	n := 0
	for i := range m.Objects {
		n += ssdio.Blocks(m.Objects[i].Size)
	}
	return n
}

// readSums reads a file of sums, nil if there is none.
func readSums(path, fingerprint string, blocks int) ([]uint32, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	switch end := len(data) - 4; {
	case end < sumsHead || string(data[:len(sumsMagic)]) != sumsMagic || le.Uint32(data[end:]) != ssdio.Sum(data[:end]):
		return nil, fmt.Errorf("%s: %w", path, errSums)
	case string(data[len(sumsMagic):sumsHead-4]) != fingerprint:
		return nil, fmt.Errorf("%s is of model %s, this is %s: %w", path, data[len(sumsMagic):sumsHead-4], fingerprint, errSums)
	case int64(le.Uint32(data[sumsHead-4:])) != int64(blocks) || end-sumsHead != 4*blocks:
		return nil, fmt.Errorf("%s has %d bytes of sums, the trunk has %d blocks: %w", path, end-sumsHead, blocks, errSums)
	}
	sums := make([]uint32, blocks)
	for i := range sums {
		sums[i] = le.Uint32(data[sumsHead+4*i:])
	}
	return sums, nil
}

// writeSums writes the file whole or not at all.
func writeSums(path, fingerprint string, sums []uint32) error {
	le := binary.LittleEndian
	data := append([]byte(sumsMagic), fingerprint...)
	data = le.AppendUint32(data, uint32(len(sums)))
	for _, s := range sums {
		data = le.AppendUint32(data, s)
	}
	return writeWhole(path, le.AppendUint32(data, ssdio.Sum(data)))
}

// sumsOf collects the sums of a model's objects, nil if one is not known.
func sumsOf(l *ssdio.Layout, m *place.Model) []uint32 {
	var sums []uint32
	for i := range m.Objects {
		obj := &m.Objects[i]
		for block := range ssdio.Blocks(obj.Size) {
			sum, known := l.Sum(obj.Key, block)
			if !known {
				return nil
			}
			sums = append(sums, sum)
		}
	}
	return sums
}
