// Package tokenizer turns text into the token ids of Kimi K3 and back.
//
// It owns four things: the rank file (tiktoken.model), the names of the special
// ids (tokenizer_config.json), the exact pre-tokenisation of the family, and a
// streaming decoder that never shows half a character.
//
//	t, err := tokenizer.Load(os.DirFS(dir), vocabSize)
//	ids := t.Encode("Hello, world!")
//	text, err := t.Decode(ids)
//
//	s := t.NewStream()
//	for id := range generated {
//		text, err := s.Add(id) // whole characters only
//	}
//	rest := s.Flush()
//
// # The way of a text
//
// Encode works in four steps, each in a file of its own:
//
//  1. slice.go cuts very long texts and very long runs of one kind (a safety
//     rule of the original tokenizer; a cut is a hard border);
//  2. pretokenize.go cuts a slice into pieces by the eight alternatives of one
//     regular expression, in backtracking order;
//  3. lookup.go finds a piece that is a token as a whole;
//  4. bpe.go merges the bytes of any other piece, lowest rank first.
//
// # What it never does
//
//   - Encode and Append never yield a special id, whatever the text says: a
//     marker typed by a person stays text. Only EncodeSpecial reads markers.
//   - No beginning-of-sequence id is ever inserted.
//   - It keeps no cache and no state between calls: a Tokenizer is immutable
//     after Load and safe for any number of goroutines. A Stream belongs to one.
//
// # Caveats
//
// Character classes are those of Unicode 16.0, the version the reference
// tokenizer was built with, whatever version the Go toolchain carries: what
// its tables lack is added by unicode16.go, and a test counts every class.
//
// Text that is not valid UTF-8 is accepted. Each stray byte counts as one
// character of the class of U+FFFD and is encoded as the byte it is, so joining
// the [Tokenizer.Bytes] of the ids gives back exactly the bytes that went in.
// Decode and Stream promise valid UTF-8 and show U+FFFD instead.
package tokenizer
