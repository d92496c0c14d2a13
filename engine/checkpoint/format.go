package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// An Entry is one tensor of a file to be written.
type Entry struct {
	Name  string
	DType DType
	Shape []int
}

// Bytes is the size of the tensor.
func (e *Entry) Bytes() int64 {
	n := e.DType.Bits() / 8
	for _, d := range e.Shape {
		n *= int64(d)
	}
	return n
}

// FormatHeader is the header of a safetensors file that holds the tensors one after
// the other: its length in front, padded with spaces to a multiple of 8 (spec 2.1).
func FormatHeader(list []Entry) []byte {
	var h bytes.Buffer
	h.Write(make([]byte, 8))
	h.WriteString(`{"__metadata__":{"format":"pt"}`)
	at := int64(0)
	for i := range list {
		e := &list[i]
		end := at + e.Bytes()
		shape := strings.ReplaceAll(fmt.Sprint(e.Shape), " ", ",")
		fmt.Fprintf(&h, `,%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, e.Name, e.DType, shape, at, end)
		at = end
	}
	h.WriteString("}")
	for h.Len()%8 != 0 {
		h.WriteByte(' ')
	}
	out := h.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	return out
}
