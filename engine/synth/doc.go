// Package synth makes checkpoints with random weights and K3's true dimensions, in
// the official layout, at any depth and with any number of experts: for measuring a
// machine without the real files, and for testing what is larger than memory.
//
//	m, err := synth.New(synth.Options{Layers: 8, Experts: 128, Seed: 1})
//	err = m.Write(ctx, dir, func(p synth.Progress) { ... })
//
// Every byte is a function of the seed, the tensor's name and its place: a job that
// was interrupted goes on with the shards that are missing, and two machines make
// the same files. A shard counts once it was written aside, synced and renamed.
//
// # What random weights are worth
//
// The arithmetic, the bytes and the number of experts per token are those of the
// real model; what is said is noise. Weights are scaled so that activations neither
// vanish nor explode over the depth. Routing is not that of a trained model: which
// experts a token gets depends on random directions, flat over the experts with
// Skew 0. With Skew the bias of the router favours some of them, whose share follows
// from how wide the biases are spread beside the scores. The mixers' outputs are
// damped (see mixerGain) so that a router asked one sub-layer early is right about
// as often as was measured on the real model, 60 to 70 %.
//
// # What it never does
//
// It never overwrites a file that is not its own: a folder with anything else in it
// is refused. It computes nothing and knows nothing of drives.
package synth
