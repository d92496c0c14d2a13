package engine

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"
)

// A snapshot is a Sequence on disk, so that a conversation goes on without being
// read again. It is a cache: the token ids are the truth, and a snapshot that is
// damaged or of another model is put aside and computed anew.
//
//	offset  bytes
//	0       8      magic "DFSNAP01"
//	8       4      n, length of the header, little-endian like all that follows
//	12      n      header, JSON, see SnapshotHeader
//	        4      CRC-32C of all bytes so far
//	        4*t    token ids, t = header.tokens, uint32
//	        4*v    logits of the last token, v = header.vocab, float32
//	               state, see k3.State.WriteTo
//	        4      CRC-32C of everything before it
const snapshotMagic = "DFSNAP01"

// maxSnapshotHeader bounds the header of a file that may be anything.
const maxSnapshotHeader = 1 << 16

// SnapshotHeader says what a snapshot holds.
type SnapshotHeader struct {
	Fingerprint string `json:"fingerprint"` // of the model
	Arithmetic  string `json:"arithmetic"`  // kernel.Arithmetic it was computed with
	Tokens      int    `json:"tokens"`      // tokens the state has seen
	Vocab       int    `json:"vocab"`       // logits of the last one
	StateBytes  int64  `json:"state_bytes"` // the state after them
}

// bytes is the length of the whole file behind a header of n bytes.
func (h *SnapshotHeader) bytes(n int) int64 {
	return int64(len(snapshotMagic)) + 4 + int64(n) + 4 + 4*int64(h.Tokens) + 4*int64(h.Vocab) + h.StateBytes + 4
}

// ErrSnapshotDamaged: the bytes are not those that were written.
var ErrSnapshotDamaged = errors.New("the snapshot is damaged")

// A SnapshotForeignError is a snapshot of another model or of a build with another
// arithmetic: continuing it would give other tokens.
type SnapshotForeignError struct {
	What       string // "model" or "arithmetic"
	Have, Want string // of the snapshot, and of this engine
}

// Error names both sides.
func (e *SnapshotForeignError) Error() string {
	return fmt.Sprintf("the snapshot belongs to another %s: %s, this one is %s; the text has to be read again", e.What, e.Have, e.Want)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteSnapshot writes the sequence to w.
func (e *Engine) WriteSnapshot(w io.Writer, seq *Sequence) error {
	if err := seq.settle(); err != nil {
		return err
	}
	if len(seq.tokens) == 0 || seq.state.Broken() {
		return errors.New("there is nothing to keep: the sequence has seen no tokens, or was interrupted in the middle of one")
	}
	c := e.model.Config()
	h := SnapshotHeader{Fingerprint: e.info.Fingerprint, Arithmetic: e.info.Arithmetic, Tokens: len(seq.tokens), Vocab: c.Vocab,
		StateBytes: e.stateBytes(len(seq.tokens))}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(w, 1<<20)
	sum := crc32.New(castagnoli)
	out := io.MultiWriter(buf, sum)
	head := binary.LittleEndian.AppendUint32([]byte(snapshotMagic), uint32(len(text)))
	head = append(head, text...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err := out.Write(head); err != nil {
		return err
	}
	words := make([]byte, 0, 4*(len(seq.tokens)+len(seq.logits)))
	for _, id := range seq.tokens {
		words = binary.LittleEndian.AppendUint32(words, uint32(id))
	}
	for _, v := range seq.logits {
		words = binary.LittleEndian.AppendUint32(words, math.Float32bits(v))
	}
	if _, err := out.Write(words); err != nil {
		return err
	}
	if _, err := seq.state.WriteTo(out); err != nil {
		return err
	}
	if _, err := buf.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return err
	}
	return buf.Flush()
}

// SnapshotBytes is the size of a snapshot after n tokens.
func (e *Engine) SnapshotBytes(n int) int64 {
	h := SnapshotHeader{Tokens: n, Vocab: e.model.Config().Vocab, StateBytes: e.stateBytes(n)}
	return h.bytes(256)
}

// SaveSnapshot writes the sequence to a file: aside, synced and renamed, so that
// the file is either the old one or the whole new one, whatever happens.
func (e *Engine) SaveSnapshot(path string, seq *Sequence) error {
	err := writeAside(path, func(w io.Writer) error { return e.WriteSnapshot(w, seq) })
	if err != nil {
		return fmt.Errorf("writing the snapshot %s: %w", path, err)
	}
	return nil
}

// snapshotReader reads and sums.
type snapshotReader struct {
	r   *bufio.Reader
	sum hash.Hash32
}

func (s *snapshotReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

// header reads up to the first checksum.
func (s *snapshotReader) header() (h SnapshotHeader, n int, err error) {
	head := make([]byte, len(snapshotMagic)+4)
	if _, err := io.ReadFull(s, head); err != nil {
		return h, 0, damaged("it ends in its first bytes")
	}
	if string(head[:len(snapshotMagic)]) != snapshotMagic {
		return h, 0, damaged("it does not begin like one")
	}
	n = int(binary.LittleEndian.Uint32(head[len(snapshotMagic):]))
	if n > maxSnapshotHeader {
		return h, 0, damaged("its header claims %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(s, text); err != nil {
		return h, 0, damaged("it ends in its header")
	}
	want := s.sum.Sum32()
	var sum [4]byte
	if _, err := io.ReadFull(s, sum[:]); err != nil || binary.LittleEndian.Uint32(sum[:]) != want {
		return h, 0, damaged("the checksum of its header is wrong")
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, 0, damaged("its header is not readable: %v", err)
	}
	return h, n, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSnapshotDamaged, fmt.Sprintf(format, args...))
}

// ReadSnapshot reads a sequence that WriteSnapshot wrote. A snapshot of another
// model is a *SnapshotForeignError, a damaged one ErrSnapshotDamaged.
func (e *Engine) ReadSnapshot(r io.Reader) (*Sequence, error) {
	s := &snapshotReader{r: bufio.NewReaderSize(r, 1<<20), sum: crc32.New(castagnoli)}
	h, _, err := s.header()
	if err != nil {
		return nil, err
	}
	c := e.model.Config()
	switch {
	case h.Fingerprint != e.info.Fingerprint:
		return nil, &SnapshotForeignError{"model", h.Fingerprint, e.info.Fingerprint}
	case h.Arithmetic != e.info.Arithmetic:
		return nil, &SnapshotForeignError{"arithmetic", h.Arithmetic, e.info.Arithmetic}
	case h.Tokens < 1 || h.Tokens > c.MaxContext || h.Vocab != c.Vocab || h.StateBytes != e.stateBytes(h.Tokens):
		return nil, damaged("its header says %d tokens, %d logits, %d bytes of state", h.Tokens, h.Vocab, h.StateBytes)
	}
	seq := &Sequence{model: e.model}
	var word [4]byte
	for range h.Tokens {
		if _, err := io.ReadFull(s, word[:]); err != nil {
			return nil, damaged("it ends in its token ids")
		}
		id := int(binary.LittleEndian.Uint32(word[:]))
		if id >= c.Vocab {
			return nil, damaged("token id %d", id)
		}
		seq.tokens = append(seq.tokens, id)
	}
	for range h.Vocab {
		if _, err := io.ReadFull(s, word[:]); err != nil {
			return nil, damaged("it ends in its logits")
		}
		seq.logits = append(seq.logits, math.Float32frombits(binary.LittleEndian.Uint32(word[:])))
	}
	if seq.state, err = e.model.ReadState(s, h.Tokens); err != nil {
		return nil, damaged("it ends early: %v", err)
	}
	want := s.sum.Sum32()
	if _, err := io.ReadFull(s, word[:]); err != nil || binary.LittleEndian.Uint32(word[:]) != want {
		return nil, damaged("its checksum is wrong")
	}
	return seq, nil
}

// LoadSnapshot reads a snapshot file. A file of another length than its header
// says is refused before anything of it is read.
func (e *Engine) LoadSnapshot(path string) (*Sequence, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &snapshotReader{r: bufio.NewReader(f), sum: crc32.New(castagnoli)}
	h, n, err := s.header()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if want := h.bytes(n); h.Tokens >= 0 && h.StateBytes >= 0 && info.Size() != want {
		return nil, fmt.Errorf("%s: %w", path, damaged("it has %d bytes, its header says %d", info.Size(), want))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	seq, err := e.ReadSnapshot(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return seq, nil
}
