// Package check holds package simulate against the engine: it runs small models for
// real, from emulated drives, has the same simulated, and compares times, bytes and
// the fates of all uses of experts.
//
//	r, err := check.Run(ctx, check.Options{Scratch: "/dev/shm"})
//	r.Text(os.Stdout)
//	if !r.Agrees { ... }
//
// # What is compared
//
// In each of Configs an engine is opened that reads its experts from drives with
// limits, reads a prompt in several passes and generates. The same passes are
// replayed in virtual time. What the two share is measured beforehand and says
// nothing about drives, caches or schedulers:
//
//   - what the passes ask for, and what their routers say beforehand. Both are the
//     same bits in every run, so a recorder takes them from the forward pass over
//     mapped experts;
//   - what the arithmetic costs: the recorder times its parts, and they are scaled to
//     add up to what an engine takes that has everything in memory;
//   - how much later than its drive promises a single read is there.
//
// Drives are slow, so that a read takes longer than what the machine does beside it,
// and the rates of a configuration are in experts per second, so that it is as slow
// with any model.
//
// # Noise
//
// Every run is repeated, and of each step, a layer of a pass, the fastest counts:
// others on the machine slow a step down and nothing speeds it up.
// Runs are added while another still betters a part of them. What was simulated plays
// no part in that.
//
// # Caveats
//
// The models are small. One has experts of several blocks, so that the cut of a read
// over drives is compared, and in one configuration the trunk is streamed; hubs,
// faults and hedges are not compared.
package check
