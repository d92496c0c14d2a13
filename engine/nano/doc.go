// Package nano holds the demonstration model: a toy of 12.56 million parameters
// with the whole Kimi K3 architecture, in the official checkpoint layout,
// embedded in the program. It exists so that the engine can be tried and tested
// anywhere, without a download.
//
// Use:
//
//	c, err := nano.Open()
//
// The result is a checkpoint like any other. Its weights are not copied: they
// are windows into the program file, which the system pages in as they are
// touched. Every place that uses the model prints Notice.
//
// What it is: 8 layers of width 192, MLA in layers 3 and 7 and KDA elsewhere,
// residual blocks of 3, a dense layer 0, then 64 routed experts of which 4 run,
// with 4-bit weights that were trained as such, and 2 shared experts. About 4.0
// million parameters are active per token. Its vocabulary is its own: 3,840
// byte-pair ranks and 256 special ids.
//
// What it can do: answer simple questions in the words of its training text
// (about Deltafin and a few facts of the world), read short notes made of
// sentences like "Maria Weber works as a pilot.", write small stories, lists,
// tables and snippets. It was trained from scratch on generated English only,
// mostly on inputs below 400 tokens and never above 1,024.
//
// What it cannot: it is no source of knowledge. It mixes things up, cannot
// calculate, knows nothing beyond its small training text, and mostly fails on
// freely written notes and on questions in words of one's own. Decode it
// greedily or at a low temperature, up to about 0.3.
//
// The files in model/ (weights and tokenizer) were made for this project and are
// released under CC0-1.0: no rights reserved.
//
// What the package never does: it runs nothing and decides nowhere that the toy
// is used; only a caller who was asked for it opens it.
package nano
