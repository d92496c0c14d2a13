package ssdio

import "fmt"

// BlockSize is the unit of checking and cutting, in bytes: objects are divided
// from their first byte on into blocks of this size, the last one shorter. One
// checksum covers one block, cuts fall between blocks.
//
// 256 KiB: reads this large reach the ceiling of every drive measured so far,
// and the sums of all K3 experts take 22 MB.
const BlockSize = 256 << 10

// A Key names an object. Experts use both numbers as the model counts them;
// other objects (parts of the trunk) use [PartKey].
type Key struct {
	Layer  int32 // -1: belongs to the model, not to one layer
	Expert int32 // below 0: not an expert but part -Expert-1 of the layer
}

// PartKey names the part-th object of a layer that is not an expert. Layer -1
// is the model itself (embedding, head).
func PartKey(layer, part int) Key {
	return Key{Layer: int32(layer), Expert: int32(-part - 1)}
}

// String says "layer 3 expert 17", "layer 3 part 2" or "model part 0".
func (k Key) String() string {
	switch {
	case k.Expert >= 0:
		return fmt.Sprintf("layer %d expert %d", k.Layer, k.Expert)
	case k.Layer < 0:
		return fmt.Sprintf("model part %d", -int64(k.Expert)-1)
	default:
		return fmt.Sprintf("layer %d part %d", k.Layer, -int64(k.Expert)-1)
	}
}

// Blocks is the number of blocks of an object of size bytes.
func Blocks(size int64) int { return int((size + BlockSize - 1) / BlockSize) }
