// Package engine is the public face of the model: open a checkpoint, hand over
// token ids, receive tokens as events. It is all that session/run, the server and
// the command line see of the arithmetic below.
//
//	e, err := engine.Open(ctx, engine.Options{Model: dir}) // "" is the demonstration model
//	ids, err := e.Prompt(&chat.Prompt{Messages: msgs, Thinking: true, Generate: true})
//	seq := e.NewSequence()
//	res, err := e.Generate(ctx, seq, engine.Request{Tokens: ids, MaxTokens: 500, Sampling: e.Sampling()}, engine.Listener{
//		Token: func(t engine.Token) error { ...; return nil },
//	})
//
// # The life of a token
//
//	ids -> Generate: what the sequence has already seen is kept, the rest is
//	       prefilled in passes of Options.PrefillRows rows
//	    -> k3.Runner.Forward: embed, then for each layer the depth mixer, KDA or
//	       MLA, the depth mixer again, experts or dense feed-forward
//	    -> logits of the last position
//	    -> sample.Pick, a function of the logits, the seed and the position
//	    -> Listener.Token: the caller journals it; only then is it fed back
//
// # Sequences
//
// A Sequence is one conversation as the model has seen it: token ids and the
// state after them. The caller always hands over the full list of ids, and the
// engine decides: if they begin with those already seen, only the rest is
// computed; if not, it starts over, because a recurrent state cannot be cut back.
// The ids are the truth, the state is a cache of them, and a Snapshot is that
// cache on disk.
//
// # Models larger than memory
//
// With Options.ExpertCache the routed experts are read from drives (stream.go,
// drives.go): the router speaks, package expert finds hits and sends reads for the
// rest through ssdio, and the forward pass computes each expert as it lands. What
// that costs is in Engine.Streaming. An expert that cannot be read ends the call
// with an *expert.Error; the sequence then has to be read anew.
//
// # Drafts
//
// With Options.Draft tokens are proposed that stood in the conversation before (package
// lookup), and verified several in one pass, which reads fewer experts per token. Each
// is picked from the logits before it, as always, and kept as long as it is the one
// that was proposed (draft.go); what the pass added to the state beyond that is taken
// back. How many are worth it is measured while the answer is made (draft_control.go):
// a text that does not repeat itself is left alone.
//
// # Memory
//
// Options.Memory is a budget for the whole process. Open divides it (Info.Memory),
// or refuses with a *memory.Error that names the numbers. While the engine is open,
// the cache is cut when other programs take the machine's memory, and grows back;
// which experts are used most is kept in Options.HeatDir for the next run. What a
// person should know of this comes through Options.Notify (memory_plan.go,
// memory_keep.go).
//
// # Exactness
//
// For one checkpoint the logits of a position are the same bits on every machine,
// with any number of threads, any kernel level, however the prompt was cut and
// wherever it was resumed. Choices depend on logits, seed and position alone.
//
// The one option that changes results is Options.Trunk: with TrunkInt8 the weights that
// every token uses come from a file that ConvertTrunk made, rounded to int8. Info.Trunk
// and Info.Notice then say so, and Info.Arithmetic differs, so that snapshots and
// threads of the two never mix (trunk_int8.go). For one file results are again the same
// bits everywhere.
//
// # Concurrency and caveats
//
// An Engine may be used from several goroutines; one Generate runs at a time, the
// others wait for their turn. A Sequence belongs to one call at a time. Events run
// on the goroutine of Generate and hold it up: hand work over, do not do it there.
// The package prints nothing, has no global state and knows of no screen.
package engine
