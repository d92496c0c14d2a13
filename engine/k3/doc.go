// Package k3 is the forward pass of the Kimi K3 architecture at any size, over
// weights as they lie in the checkpoint. It follows section 3 of the model
// specification, one file per idea, in the order of a token's life:
//
//	embed.go    token ids to rows of the residual stream
//	attnres.go  what a sub-layer reads: a mixture over depth, not a plain sum
//	kda.go      Kimi Delta Attention: convolution, gates, the recurrent state
//	mla.go      gated latent attention, absorbed, over cached latents
//	moe.go      router, latent projections, routed and shared experts
//	dense.go    the feed-forward of the first layers
//	head.go     final mix, norm, logits
//	draft.go    several rows at once of which only the first are kept
//
// A Model is the weights, immutable and shared. A State is one conversation: the
// KDA matrices, convolution rows and latent rows up to a position; a value that
// can be cloned, measured and dropped. A Runner has the buffers and the workers
// of one forward pass at a time, and advances a State by any number of rows.
//
// # The same bits, however it is cut
//
// A row's result does not depend on how many rows share the pass, how many
// workers run it, or where a prompt was cut: every sum has one order (package
// kernel), KDA is a left-to-right scan in prefill too, attention is absorbed in
// both forms, experts are summed in the router's order. Prefill of n rows and n
// single steps agree bit for bit; the tests hold that.
//
// # What it never does
//
// It does not sample, tokenise, read files or know about drives: weights come as
// matrices of mapped files or, layer by layer, through the Trunk interface (trunk.go),
// experts through the Experts interface. It keeps nothing between passes but what is
// in the State and, after a draft, what Commit needs. Arithmetic is float32 throughout.
package k3
