// Package memory divides a machine's memory before a model is opened, and watches
// over the division while it runs. It owns the arithmetic of the plan, the reading
// of the machine's memory on each system, and the decision when a cache has to give
// memory back. It allocates nothing, changes no cache by itself, and prints nothing.
//
//	r, err := memory.Read()                     // free and taken memory, pressure
//	plan, err := memory.Make(demand, limits)    // *Error if it cannot work
//	memory.Watch(ctx, memory.Config{...})       // until ctx ends
//
// # What is free
//
// On Linux MemAvailable of /proc/meminfo, or what a control group (v1 or v2, at any
// level above the process) still allows if that is less. On macOS hw.memsize times
// kern.memorystatus_level, the system's own percentage. On Windows what
// GlobalMemoryStatusEx calls available. Swap is never counted: weights that were
// swapped out cost a write and a read where the model's file costs a read.
//
// Of what is free a margin stays free, for the system's own caches and for other
// programs: a twentieth of the machine, at least 512 MiB.
//
// # What is counted
//
// A plan is of the resident size of the whole process: the program as measured
// when the plan is made, the trunk, the conversation at the length asked for, the
// buffers of the forward passes, the room that the garbage collector works with,
// and experts in what remains. The Go heap holds only conversation and buffers, all
// without pointers, so a collection costs little and happens at a quarter of growth
// (GCPercent); GOMEMLIMIT at the sum of these parts keeps a burst of garbage from
// taking what the plan gave to experts.
//
// # Caveats
//
// Pages of mapped files belong to the system, which may keep more of them than the
// plan says while nobody else wants the memory.
package memory
