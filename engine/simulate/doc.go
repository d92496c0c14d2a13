// Package simulate runs the store, the cache policy, the lookahead and the drive
// scheduler of the engine over K3 at its full size, or another shape, in virtual
// time: what would this machine do? It owns the description of a machine, the
// generator of routing, the cost of arithmetic and the virtual clock; it decides
// nothing about experts or reads, which is the business of packages expert and
// ssdio, whose code runs here unchanged.
//
//	m, err := simulate.ReadMachine(file)            // or Example("m5max")
//	r, err := simulate.Decode(ctx, m, simulate.K3(), simulate.Options{Tokens: 1000})
//	fmt.Println(r.Rate(), r.Counts.HitRate())
//
// # Virtual time
//
// One goroutine does everything. ssdio.Set stands on a ssdio.Timeline (clock):
// instead of handing a read to a worker it schedules the moment at which the
// emulated drive (emulate.Model) would be through with it. The simulated engine
// goes through the layers as package k3 does: where that computes, the clock
// advances by the cost and the reads that end meanwhile land; where it waits for an
// expert, the clock jumps from one end of a read to the next until a result is
// there. Nobody else runs, so there is nobody to wait for, and equal inputs give
// equal runs to the nanosecond.
//
// No byte moves: slots are addresses without memory, and nothing is checked.
//
// # Routing
//
// Routing comes from a Router: generated, or a recorded trace of single tokens. Replay
// takes a recording of whole passes instead, with what the routers of the real run
// said beforehand, and can then be held against that run (package check does).
//
// # Arithmetic
//
// An operation takes the longer of its arithmetic at Machine.Gflops and its weights
// at the memory bandwidth, of which the drives that are busy then take their part.
// Weights are read once per pass; the many rows of a prompt cost arithmetic. Where the
// parts of a pass were timed on a machine, Options.Arithmetic takes the place of that.
//
// # Memory
//
// Divide asks package memory, as the engine does when it opens a model.
//
// # Caveats
//
// Drives have a limit, a latency and a hub, but no bad days: no heat, no stalls, so
// no hedges either. The part of the trunk that memory has no room for lies on the
// first drive, an equal share of every layer (trunk.go). Routing that was not recorded
// is generated: Assumptions says from what, and whoever prints a result prints these
// with it.
package simulate
