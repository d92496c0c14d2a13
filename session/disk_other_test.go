//go:build !linux

package session

import "errors"

func smallDisk(string) error { return errors.ErrUnsupported }
