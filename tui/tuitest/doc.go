// Package tuitest is a backend without an engine, for tests of the screen.
//
//	f := tuitest.New("decoding")
//
// Its clock stands still, its figures are those of a made-up machine, and what it
// was asked to do is told by Calls. Set publishes another state.
//
// What the package never does: it starts nothing and waits for nothing.
//
// Caveats: it is for tests alone; the program does not import it.
package tuitest
