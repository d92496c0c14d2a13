// Package aterm keeps the program from asking the terminal questions before
// main.
//
// Importing bubbletea v1 makes lipgloss ask the terminal for its background
// colour, from an init function. A terminal that does not answer (a serial
// console, a pseudo-terminal of a test) holds the whole program for the five
// seconds after which termenv gives up. lipgloss asks nothing once it has been
// told the answer, so this package tells it, from an init function of its own.
//
// Packages that are ready are initialised in the order of their import paths, so
// the trick works because deltafin/tui/theme/aterm sorts before
// github.com/charmbracelet/bubbletea, and only while this package needs nothing
// that bubbletea does not need as well. A test on a pseudo-terminal that never
// answers holds both to it.
//
// Import it for its effect, wherever bubbletea is imported. It exports nothing
// and never does anything else: themes choose their colours from the
// environment and the user's word, see tui/theme.
package aterm
