package emulate

import (
	"time"

	"deltafin/ssdio"
)

// A Model is the timing of an emulated drive without its files: it computes when
// reads are over and waits for nothing. Simulations in virtual time use it. Its
// times are those that [FS] waits for, by the same code. Faults do not strike it.
type Model struct {
	fs    *FS
	epoch time.Time
}

// Model makes a model of a drive by its specification, of which the path means
// nothing. Models of one fleet share hubs, with each other and with its drives.
func (f *Fleet) Model(spec Spec) (*Model, error) {
	fs, err := f.wrap(spec, ssdio.OS(spec.Path))
	if err != nil {
		return nil, err
	}
	return &Model{fs: fs, epoch: fs.opened}, nil
}

// Read says when a read of n bytes is over that is given to the drive at now, a
// time since any fixed moment. Reads must come in the order of their times.
func (m *Model) Read(n int64, now time.Duration) time.Duration {
	return m.fs.pace(int(n), 1, m.epoch.Add(now)).Sub(m.epoch)
}
