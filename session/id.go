package session

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// An ID names a thread, a turn, a queue item or a snapshot: 64 random bits,
// written as 16 hex digits. Like a commit's, its first digits do as long as
// they fit one thing only. The zero ID means none.
type ID uint64

const (
	idDigits    = 16
	shortDigits = 7
)

// String gives all 16 digits.
func (id ID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// Short gives the first seven digits: what a person reads and types.
func (id ID) Short() string { return id.String()[:shortDigits] }

// MarshalText writes the digits, or nothing for the zero ID.
func (id ID) MarshalText() ([]byte, error) {
	if id == 0 {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = 0
		return nil
	}
	if len(b) != idDigits {
		return fmt.Errorf("%w: id %q must have %d hex digits", ErrInvalid, b, idDigits)
	}
	v, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil {
		return fmt.Errorf("%w: id %q must have %d hex digits", ErrInvalid, b, idDigits)
	}
	*id = ID(v)
	return nil
}

// newID draws a fresh ID. Two drawn by one store collide about once in ten
// billion stores of a million turns; the unique index turns that into an error.
func newID() ID {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: the runtime stops the process instead
		if id := ID(binary.BigEndian.Uint64(b[:])); id != 0 {
			return id
		}
	}
}

// db gives the ID as a signed number of the same order, so that the IDs that
// share a prefix are one range of the index. The zero ID is never stored.
func (id ID) db() int64 { return int64(uint64(id) ^ 1<<63) }

// idFromDB undoes db.
func idFromDB(v int64) ID { return ID(uint64(v) ^ 1<<63) }

// prefixRange gives the first and last ID that begin with the hex digits of
// prefix.
func prefixRange(prefix string) (lo, hi ID, err error) {
	p := strings.ToLower(strings.TrimSpace(prefix))
	if p == "" || len(p) > idDigits || strings.Trim(p, "0123456789abcdef") != "" {
		return 0, 0, fmt.Errorf("%w: %q is not an id: ids are up to %d hex digits", ErrInvalid, prefix, idDigits)
	}
	v, err := strconv.ParseUint(p, 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %q is not an id: %w", ErrInvalid, prefix, err)
	}
	rest := uint(4 * (idDigits - len(p)))
	first := v << rest
	return ID(first), ID(first | (1<<rest - 1)), nil
}
