// Package theme holds what the screen looks like: colours by role, and the set of
// glyphs that boxes, bars and plots are made of.
//
// A [Theme] is made once, from the environment and the user's choice ([Detect],
// [New]), and handed to whatever draws. A [Style] is a ready sequence of
// characters, so drawing costs a concatenation, depends on no global state and
// gives the same bytes in every test. There are three themes: dark, light, and
// mono, which uses bold, faint, underline and reverse alone. NO_COLOR selects
// mono whatever else was asked.
//
// Nothing on the screen may be told by colour alone: a role that warns comes with
// a word, a letter or a number.
//
// What the package never does: it asks the terminal nothing (a mute one would
// hold the program up), reads no environment by itself, and keeps no state.
//
// Caveats: on a terminal of 16 colours the user's own palette decides how they
// look. Light backgrounds are recognised only by COLORFGBG, which few terminals
// set; --theme light is the sure way.
package theme
