package memory

import "errors"

// A Reading is the memory of the machine and of this process at one moment. Sizes
// are bytes.
type Reading struct {
	Total     int64  // of the machine, or the control group's limit if less
	Available int64  // what can be taken without swapping
	Own       int64  // resident and not backed by a file, of this process
	Resident  int64  // all that is resident of this process
	How       string // where the numbers come from

	// Pressure is the share of the last ten seconds, in percent, in which some
	// program waited for memory: 0 where the system does not say.
	Pressure float64
}

// Margin is what is left free: a twentieth of the machine, at least 512 MiB.
func (r *Reading) Margin() int64 { return max(r.Total/20, 512<<20) }

// Spare is what the whole process may take: what it holds itself, and what is free
// without the margin.
func (r *Reading) Spare() int64 { return max(r.Own+r.Available-r.Margin(), 0) }

// ErrUnknown: the system did not say how much memory there is. A budget that is
// named can be used nevertheless.
var ErrUnknown = errors.New("the system does not say how much memory is free: name a budget")
