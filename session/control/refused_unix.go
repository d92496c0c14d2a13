//go:build !windows

package control

import (
	"errors"
	"syscall"
)

// refused reports that a socket lies there but nobody listens: its owner is dead.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
