package checkpoint_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
)

// shardOf makes a file of a header and n bytes of data.
func shardOf(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestHeadersThatLie(t *testing.T) {
	one := func(body string) []byte { return shardOf(`{"t":{`+body+`}}`, 8) }
	two := func(a, b string) []byte {
		return shardOf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":`+a+`},"b":{"dtype":"U8","shape":[4],"data_offsets":`+b+`}}`, 8)
	}
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"no length":            {[]byte{1, 2}, "2 bytes, too short"},
		"length of everything": {binary.LittleEndian.AppendUint64(nil, 1<<63), "header length is 9223372036854775808, over the limit of 100000000"},
		"length past the end":  {binary.LittleEndian.AppendUint64(nil, 9), "header length is 9 but only 0 bytes follow"},
		"not JSON":             {shardOf("PK\x03\x04", 0), "at byte 8"},
		"a list":               {shardOf("[]", 0), "'[' where '{' must follow"},
		"rest after the JSON":  {shardOf(`{}x`, 0), "at byte 10"},
		"data without tensors": {shardOf(`{}`, 3), "describes 0 bytes of data, the file has 3"},
		"no dtype":             {one(`"shape":[8],"data_offsets":[0,8]`), "must all be there"},
		"no shape":             {one(`"dtype":"U8","data_offsets":[0,8]`), "must all be there"},
		"no offsets":           {one(`"dtype":"U8","shape":[8]`), "must all be there"},
		"unknown dtype":        {one(`"dtype":"Q4","shape":[8],"data_offsets":[0,8]`), `"t": unknown dtype "Q4"`},
		"unknown field":        {one(`"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1`), `unknown field "x"`},
		"field twice":          {one(`"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]`), "dtype stands twice"},
		"negative dimension":   {one(`"dtype":"U8","shape":[-8],"data_offsets":[0,8]`), `a dimension of "t" is -8`},
		"fractional dimension": {one(`"dtype":"U8","shape":[8.0],"data_offsets":[0,8]`), "8.0"},
		"huge dimension":       {one(`"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,8]`), "over the limit of 2^53"},
		"product overflows":    {one(`"dtype":"U8","shape":[4294967296,4294967296,16],"data_offsets":[0,8]`), "not a possible size"},
		"bits do not fill":     {one(`"dtype":"F4","shape":[15],"data_offsets":[0,8]`), "not a possible size"},
		"nine dimensions":      {one(`"dtype":"U8","shape":[1,1,1,1,1,1,1,1,8],"data_offsets":[0,8]`), "more than 8 dimensions"},
		"size is wrong":        {one(`"dtype":"BF16","shape":[8],"data_offsets":[0,8]`), "span 8 bytes, BF16 [8] needs 16"},
		"backward offsets":     {one(`"dtype":"U8","shape":[8],"data_offsets":[8,0]`), "[8 0] must be [begin, end]"},
		"one offset":           {one(`"dtype":"U8","shape":[8],"data_offsets":[0]`), "must be [begin, end]"},
		"three offsets":        {one(`"dtype":"U8","shape":[8],"data_offsets":[0,8,8]`), "more than two"},
		"negative offset":      {one(`"dtype":"U8","shape":[8],"data_offsets":[-8,0]`), `a data offset of "t" is -8`},
		"past the end":         {shardOf(`{"t":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`, 8), "ends at byte 9 of the data, which has 8"},
		"overlap":              {two("[0,4]", "[3,7]"), `"b": its data starts at 3 and overlaps tensor "a", which ends at 4`},
		"same place":           {two("[0,4]", "[0,4]"), "overlaps"},
		"gap":                  {shardOf(`{"t":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8), "the 4 bytes before it belong to no tensor"},
		"rest":                 {shardOf(`{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 8), "describes 4 bytes of data, the file has 8"},
		"name without end":     {shardOf(`{"t`, 0), "does not end"},
		"name not UTF-8":       {shardOf("{\"\xc3\x28\":{}}", 0), "not valid UTF-8"},
		"empty name":           {shardOf(`{"":{}}`, 0), "name of 0 bytes"},
		"long name":            {shardOf(`{"`+strings.Repeat("n", 2000)+`":{}}`, 0), "name of 2000 bytes"},
	} {
		_, _, err := checkpoint.ParseHeader("f.safetensors", c.file)
		var fe *checkpoint.FormatError
		if !errors.As(err, &fe) || fe.File != "f.safetensors" || fe.Offset < 0 || fe.Offset > int64(len(c.file)) {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestHeadersThatHold(t *testing.T) {
	for name, c := range map[string]struct {
		file    []byte
		records int
	}{
		"nothing":       {shardOf(`{}`, 0), 0},
		"metadata only": {shardOf(`{"__metadata__":{"a":"b"}}  `, 0), 0},
		"unordered": {shardOf(`{"b":{"data_offsets":[4,8],"shape":[2,2],"dtype":"U8"},
			"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 8), 2},
		"empty tensor": {shardOf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"z":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}}`, 4), 2},
		"escaped name": {shardOf(`{"\u0061\n\ud83d\ude00":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}`, 4), 1},
	} {
		records, start, err := checkpoint.ParseHeader(name, c.file)
		if err != nil || len(records) != c.records || start < 10 {
			t.Errorf("%s: %d records, data from %d, %v", name, len(records), start, err)
		}
	}
}

func TestDTypeNames(t *testing.T) {
	if s := (checkpoint.BF16 | checkpoint.F32).String(); s != "BF16 or F32" {
		t.Error(s)
	}
	if checkpoint.F8E8M0.String() != "F8_E8M0" || checkpoint.F4.Bits() != 4 || checkpoint.DType(0).String() != "no dtype" {
		t.Error("names or sizes of dtypes")
	}
}
