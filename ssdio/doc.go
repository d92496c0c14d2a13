// Package ssdio reads objects (experts of a model, parts of its trunk) from
// several drives as if they were one fast one. It owns the drives, the memory
// that reads land in, the order of rights between reads, the split of every
// read over the drives that hold its bytes, the checks on what arrived, and the
// counters over all of that. It knows nothing of tensors, models or screens.
//
// # The way of one read
//
// A [Drive] is a folder on one device, known again by a marker file. A [Layout]
// says which bytes of which object lie in which file of which drive, with one
// checksum for every 256 KiB block of the object. A [Set] joins drives and
// layout:
//
//	set, err := ssdio.Open(drives, layout, nil)
//	slot := arena.Get()
//	b := set.Read(ctx, ssdio.Demand, []ssdio.Request{
//		{Key: key, Into: slot.Buffer(layout.Residue(key), size)},
//	})
//	for r := range b.Results() { // as they land, in no fixed order
//		if r.Err != nil { ... }
//		use(r.Into.Bytes())       // r.Into, not the buffer of the request
//	}
//
// Read puts the request in the queue of its [Class] (queue.go). When a drive
// first reaches it there, the request is cut (cut.go): each holder gets a
// contiguous piece such that all are expected to finish at the same moment,
// from the bytes each already has in flight or owes and from its measured rate.
// Owners take slices of a few MiB from the front of their pieces; a drive that
// has nothing of its own left in the oldest request takes from the back of
// another's piece as much as makes both finish together. So the cut moves with
// heat, hubs and stalls without anything being decided twice.
//
// A worker of the drive (worker.go) reads the slice straight into its place in
// the buffer, then checks every block that must be checked (trust.go) while it
// is still in the cache. What is wrong is read again from the same drive, then
// from another holder, and then the request fails with a [ReadError]. When the
// last block has landed the result is sent on the batch's channel.
//
// One goroutine watches what is in flight (watch.go): a slice far later than
// its drive's p99 is hedged, that is, read from another holder too; a drive
// that answers nothing for a while is marked lost and its work goes elsewhere
// until a probe or a late answer brings it back.
//
// # Where the bytes land
//
// Direct reads want file offset, length and memory address on boundaries of the
// device. Bodies of slices that satisfy this are read in place. The cut blocks
// at the ends (less than one alignment unit each) are read in the same system
// call into a small bounce buffer of the worker and the wanted bytes are copied
// from there: at most 2 x 4 KiB of a slice on Unix, 2 x 64 KiB on Windows. In
// place needs (address of the object) mod alignment == (offset of the object in
// the file) mod alignment, which is what the residue in [Slot.Buffer] is for;
// every slot carries the slack. When two holders have different residues one
// of them wins and slices of the other go through the bounce buffer whole,
// which costs one copy, counted in [DriveCounters.Copied]. The alternative, to
// read the aligned superset in place, was not taken: it writes up to 4 KiB over
// the neighbouring slice, which may already have been checked and be in use.
//
// # Late reads and memory
//
// A read that is stuck in the kernel may write into its destination at any
// later time. So a hedge never goes to the same memory: it goes to the same
// place in a spare slot of the same arena. If the hedge wins, the rest of the
// request is moved there, the result carries the spare slot in place of the
// caller's, and the caller's old slot becomes a spare when the loser returns.
// Memory that is not a slot ([Fixed]) cannot be exchanged, hence is not hedged.
//
// # What it never does
//
// It never returns bytes that failed a check, never retries without an end,
// never reads an object's byte twice by plan, never maps files into memory, and
// never gives the kernel read-ahead hints: all were measured elsewhere to cost.
//
// # Why not io_uring
//
// Workers that block in pread cost, on the path above the kernel, less than one
// per cent of a core per GB/s at slices of 2 MiB (benchio, "cost/read path"
// against "cost/plain reads", and a profile): 500 reads per GB leave nothing to
// save by batching system calls. What remains is the kernel's own work on
// pages and interrupts, which io_uring does as well. It would matter for reads
// of a few KB, which this package does not do.
//
// # Caveats
//
// A blocked read holds an operating system thread: a set has as many threads
// in the kernel as drives x depth. The Go scheduler notices within 20 µs to
// 10 ms that a thread is blocked and runs something else in its place; a
// program that computes on all cores meanwhile should set GOMAXPROCS a little
// above their number. A read that the kernel never returns from
// cannot be cancelled by any program; [Set.Close] waits for it a stated time,
// then reports [ErrStuck] and leaves the memory mapped.
package ssdio
