package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// lagReads is how many reads tell what one is late.
const lagReads = 15

// lag is how much later than its emulated drive promises a single read is there: the
// timer, and the way over worker and scheduler to who waits for it. It is the
// machine's, not the drive's, and no arithmetic either.
func lag(ctx context.Context, scratch string, size int64, d Drive) (_ time.Duration, err error) {
	const name = "lag"
	if err := os.WriteFile(filepath.Join(scratch, name), make([]byte, size), 0o644); err != nil {
		return 0, err
	}
	var fleet emulate.Fleet
	drive, err := fleet.OpenSpec(emulate.Spec{Path: scratch, Limit: d.bytes(size), Latency: d.Latency, Cached: true}, &ssdio.DriveOptions{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	var b ssdio.Builder
	f, err := b.File(0, name, size)
	if err != nil {
		return 0, err
	}
	key := ssdio.Key{}
	if err := errors.Join(b.Object(key, size, nil), b.Hold(ssdio.Holding{Key: key, To: size, File: f})); err != nil {
		return 0, err
	}
	set, err := ssdio.Open([]*ssdio.Drive{drive}, b.Layout(), &ssdio.Options{Verify: ssdio.VerifyAll()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	into := ssdio.Fixed(make([]byte, size))
	promised := time.Duration(float64(size)/float64(d.bytes(size))*1e9) + d.Latency
	var late []time.Duration
	for range lagReads {
		start := time.Now()
		if err := set.Read(ctx, ssdio.Demand, []ssdio.Request{{Key: key, Into: into}}).Err(); err != nil {
			return 0, fmt.Errorf("timing single reads: %w", err)
		}
		late = append(late, max(time.Since(start)-promised, 0))
	}
	return median(late), nil
}
