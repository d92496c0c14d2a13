package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

func digest(b []byte) []byte {
	h := sha256.Sum256(b)
	return h[:]
}

// sampleBytes is how much of a shard's data is looked at in each of three places.
const sampleBytes = 4096

// Fingerprint identifies the checkpoint: hexadecimal SHA-256 over config.json,
// the index and, for each shard with text tensors by name, its size, header and
// 4 KiB at the start, the middle and the end of its data. It does not depend on
// where the files lie, on the vision shards or on the tokenizer. It costs the
// reading of the headers (about 90 MB for the full model) at the first call.
//
// Two models of one layout differ in it as soon as one of the sampled places
// does, which training or merging changes practically always. It is no proof
// that all bytes are intact. With IndexOnly it covers config and index alone.
func (c *Checkpoint) Fingerprint() string { return c.print() }

func (c *Checkpoint) fingerprint() string {
	h := sha256.New()
	part := func(b []byte) {
		// Lengths keep the parts apart.
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	part(c.configText)
	part(c.indexHash)
	var open []*shard
	for i := range c.x.shards {
		if c.x.shards[i].data != nil {
			open = append(open, &c.x.shards[i])
		}
	}
	slices.SortFunc(open, func(a, b *shard) int { return cmp.Compare(a.name, b.name) })
	for _, sh := range open {
		part([]byte(sh.name))
		part(sh.data[:sh.start])
		body := sh.data[sh.start:]
		part(binary.LittleEndian.AppendUint64(nil, uint64(len(body))))
		n := min(sampleBytes, len(body))
		for _, at := range []int{0, (len(body) - n) / 2, len(body) - n} {
			part(body[at : at+n])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
