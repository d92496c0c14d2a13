// Package tui is the screen of the program: a thread of questions and answers
// beside panels that show the machine at work.
//
//	err := tui.Run(ctx, tui.Options{Backend: b, Theme: t, In: os.Stdin, Out: os.Stdout})
//
// The screen watches a Backend. It reads a Sample on a tick, ten times a second
// while an answer is under way, once a second while the window has no focus, and
// not at all when nothing runs and nobody types; a Sample that says nothing new costs
// no frame. The work never waits for it.
// Wishes of the user go to the Backend from goroutines that bubbletea owns.
//
// One model holds everything; what draws are plain structs and functions. The
// layout is a pure function of the window's size, and every frame is clamped to it.
// TestFamilies lists the tests that a change of the screen must pass.
// A window that was scrolled up keeps its first row (anchor.go). A Sample with
// ReadOnly is the work of another process, which Options.TakeOver can ask for.
// keys.go is the one place that binds keys: help, footer, command palette and
// Keys are made from it.
//
// What the package never does: it imports no engine, it writes no file but the
// one an editor is given (package outside), and no single key destroys work.
//
// Caveats: bubbletea v1 asks the terminal for its background when it is imported,
// unless package aterm, whose path sorts before it, has answered for it.
package tui
