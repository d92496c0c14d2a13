package k3

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// The state as bytes: per layer, in order, its recurrent matrices, convolution
// rows and latent rows, each as float32 little-endian without any frame. The
// lengths follow from the config and the position; who stores a state stores those
// and a checksum beside it.

// ioChunk is the number of floats converted at a time.
const ioChunk = 1 << 14

// WriteTo writes the state. A broken state is refused.
func (st *State) WriteTo(w io.Writer) (int64, error) {
	if st.broken {
		return 0, ErrBroken
	}
	var n int64
	buf := make([]byte, 4*ioChunk)
	for i := range st.layers {
		l := &st.layers[i]
		for _, x := range [][]float32{l.s, l.conv, l.latent} {
			for len(x) > 0 {
				part := x[:min(len(x), ioChunk)]
				x = x[len(part):]
				for j, v := range part {
					binary.LittleEndian.PutUint32(buf[4*j:], math.Float32bits(v))
				}
				m, err := w.Write(buf[:4*len(part)])
				n += int64(m)
				if err != nil {
					return n, err
				}
			}
		}
	}
	return n, nil
}

// ReadState reads a state that was written at a position of the same model. Memory
// grows with what really comes in, so that a wrong position costs nothing.
func (m *Model) ReadState(r io.Reader, pos int) (*State, error) {
	c := m.cfg
	if pos < 0 || pos > c.MaxContext {
		return nil, fmt.Errorf("a state at position %d: the context of the model is %d", pos, c.MaxContext)
	}
	st := m.NewState()
	buf := make([]byte, 4*ioChunk)
	for i := range st.layers {
		l := &st.layers[i]
		if c.MLALayer[i] {
			var err error
			if l.latent, err = readFloats(r, nil, pos*(c.KVLoRA+c.QKRope), buf); err != nil {
				return nil, fmt.Errorf("state of layer %d: %w", i, err)
			}
			continue
		}
		for _, x := range [][]float32{l.s, l.conv} {
			if _, err := readFloats(r, x[:0], len(x), buf); err != nil {
				return nil, fmt.Errorf("state of layer %d: %w", i, err)
			}
		}
	}
	st.pos = pos
	return st, nil
}

// readFloats appends n floats from r to dst.
func readFloats(r io.Reader, dst []float32, n int, buf []byte) ([]float32, error) {
	for n > 0 {
		part := buf[:4*min(n, ioChunk)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		for ; len(part) > 0; part = part[4:] {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(part)))
			n--
		}
	}
	return dst, nil
}
