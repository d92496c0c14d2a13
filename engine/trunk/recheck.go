package trunk

import (
	"context"

	"deltafin/ssdio"
)

// Recheck compares what stays in memory with its checksums, as it is now, and reads what
// differs again, in its place. It gives the units: layers, and Catalog.Head for the
// output matrix. No pass may compute meanwhile. It takes a second for some ten
// gigabytes. The error is an *Error or the cause of ctx.
func (s *Store) Recheck(ctx context.Context) (changed []int, err error) {
	for unit, parts := range s.stays {
		before := len(changed)
		for i, mem := range parts {
			if ctx.Err() != nil {
				return changed, context.Cause(ctx)
			}
			key := s.cat.units[unit].parts[i].key
			block, err := s.layout.Check(key, mem)
			if err != nil {
				return changed, s.cat.newError(unit, err)
			}
			if block < 0 {
				continue
			}
			if len(changed) == before {
				changed = append(changed, unit)
			}
			r := s.set.Read(ctx, ssdio.Trunk, []ssdio.Request{{Key: key, Into: ssdio.Fixed(mem)}}).Wait()[0]
			if r.Stuck {
				s.held = nil // mapped for good
			}
			if r.Err != nil {
				return changed, s.cat.newError(unit, r.Err)
			}
		}
	}
	return changed, nil
}
