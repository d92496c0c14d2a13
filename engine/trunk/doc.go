// Package trunk holds the weights that every token uses, all but the routed
// experts, in a given amount of memory. Of the layers, the first ones that fit are
// resident; the others, the output matrix last, are read again for every pass, each
// into one of a few buffers that go round.
//
//	cat, err := trunk.NewCatalog(ck)            // what lies where
//	plan := cat.Plan(bytes)                     // how many layers stay
//	s, err := trunk.New(cat, set, layout, plan) // the layout has the catalog's objects
//	err = s.Load(ctx, progress)                 // reads the resident layers
//	model = model.WithTrunk(s)
//
// What a pass needs next is known for certain, and so is what the next pass needs
// first. So a buffer never waits for an order: as soon as its layer was computed, the
// next layer that is in none is on its way, across the end of a pass too. The only
// guess is that the next pass begins where all passes begin; the buffers keep what
// they have until then.
//
// What is counted as the trunk here are its matrices. Norms, biases, convolution taps
// and the like are small and are copied when a model is loaded. Rows of the embedding
// are read where they lie in the mapped files, one for each token, and are never
// streamed.
//
// # In int8
//
// [WriteInt8] writes a second form of the trunk to a file of its own, in which the
// large matrices are rounded to int8 with a scale for every [Int8Group] columns of a
// row: about half the bytes to hold or to read. Router, gates and matrices that the
// kernels would be slow with keep the model's bytes. A Store over [Int8.Catalog] then
// works as over the model's own files. Results are not those of the model any more;
// the header of the file says for every matrix how large the differences are.
//
// # What it never does
//
// A Store never changes a weight: the same bytes arrive that lie in the files, checked
// block by block by package ssdio. It never gives out a layer that did not arrive as
// a whole: a read that fails ends the pass with an [Error], and the next pass asks
// again. It starts no goroutine and reads nothing between passes beyond its buffers.
//
// # Caveats
//
// Where layers are streamed, one pass at a time may use a Store: two that are at
// different layers would throw each other's layers out. Several sequences share one
// pass instead. A buffer that a read is stuck in is given up for good, see
// ssdio.ErrStuck.
package trunk
