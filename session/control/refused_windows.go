package control

import (
	"errors"

	"golang.org/x/sys/windows"
)

// refused reports that a socket lies there but nobody listens: its owner is dead.
func refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }
