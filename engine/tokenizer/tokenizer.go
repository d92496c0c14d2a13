package tokenizer

import (
	"fmt"
	"io/fs"
)

// The files that Load reads, in the model directory.
const (
	rankFileName   = "tiktoken.model"
	configFileName = "tokenizer_config.json"
)

// maxVocab bounds the vocabulary that Load accepts. The family has 163,840 ids;
// a size beyond this is a broken config, not a model.
const maxVocab = 1 << 24

// A Tokenizer maps text to ids and back. It is immutable after Load, so it may
// be used by many goroutines at once.
type Tokenizer struct {
	classes *classes // Unicode class bits per code point
	table   *lookup  // bytes of a token -> rank, rank -> bytes
	special *specials
	base    int // ranks are 0..base-1, special ids base..vocab-1
	vocab   int
}

// An IDError says that an id is outside the vocabulary.
type IDError struct {
	ID    int // the offending id
	Vocab int // valid ids are 0..Vocab-1
}

// Error implements error.
func (e *IDError) Error() string {
	return fmt.Sprintf("token id %d is outside the vocabulary of %d ids (0..%d)", e.ID, e.Vocab, e.Vocab-1)
}

// Load reads tiktoken.model and tokenizer_config.json from fsys, which is rooted
// in the model directory. vocab is the model's vocab_size: ranks take the ids
// from 0, special ids the rest up to vocab-1, at least 256 of them.
//
// Without a tokenizer_config.json the special ids get the official K3 names by
// their offset. Errors name the file, the line or field, and both values.
func Load(fsys fs.FS, vocab int) (*Tokenizer, error) {
	if vocab <= 0 || vocab > maxVocab {
		return nil, fmt.Errorf("vocabulary size %d: must be in 1..%d", vocab, maxVocab)
	}
	f, err := fsys.Open(rankFileName)
	if err != nil {
		return nil, fmt.Errorf("rank file: %w", err)
	}
	defer f.Close()
	ranks, err := readRanks(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rankFileName, err)
	}
	table, err := newLookup(ranks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rankFileName, err)
	}
	base := table.len()
	if base+minSpecials > vocab {
		return nil, fmt.Errorf("%s: %d ranks and %d special ids need a vocabulary of %d, but the config says vocab_size %d",
			rankFileName, base, minSpecials, base+minSpecials, vocab)
	}
	if vocab-base > maxSpecials {
		return nil, fmt.Errorf("%s: %d ranks leave %d special ids of vocab_size %d, the most is %d: rank file and config do not belong together",
			rankFileName, base, vocab-base, vocab, maxSpecials)
	}
	special, err := loadSpecials(fsys, base, vocab)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFileName, err)
	}
	return &Tokenizer{classes: newClasses(), table: table, special: special, base: base, vocab: vocab}, nil
}

// Encode returns the ids of text read as ordinary text: never a special id.
func (t *Tokenizer) Encode(text string) []int {
	return t.Append(nil, text)
}

// Append appends the ids of text, read as ordinary text, to dst. Each call is a
// text of its own: no token spans two calls.
func (t *Tokenizer) Append(dst []int, text string) []int {
	for s := t.slicer(text); !s.done(); {
		dst = t.appendSlice(dst, s.next())
	}
	return dst
}

// EncodeSpecial returns the ids of text in which exact names of special ids
// stand for those ids. The parts between them are encoded as ordinary text,
// each by itself. Where one name begins another, the longest one is taken.
func (t *Tokenizer) EncodeSpecial(text string) []int {
	var dst []int
	// Slicing comes first: a name that lies across a cut is ordinary text.
	for s := t.slicer(text); !s.done(); {
		part := s.next()
		for part != "" {
			at, end, id := t.special.find(part)
			if id < 0 {
				dst = t.appendSlice(dst, part)
				break
			}
			dst = t.appendSlice(dst, part[:at])
			dst = append(dst, id)
			part = part[end:]
		}
	}
	return dst
}

// appendSlice encodes one slice: pieces, then tokens.
func (t *Tokenizer) appendSlice(dst []int, text string) []int {
	for i := 0; i < len(text); {
		end := t.classes.pieceEnd(text, i)
		dst = t.table.appendPiece(dst, text[i:end])
		i = end
	}
	return dst
}

// Decode returns the text of ids: their bytes joined, special ids by name, and
// U+FFFD for bytes that are not valid UTF-8 (one for each maximal invalid
// part). An id outside the vocabulary is an *IDError.
func (t *Tokenizer) Decode(ids []int) (string, error) {
	var buf []byte
	for _, id := range ids {
		b, ok := t.raw(id)
		if !ok {
			return "", &IDError{ID: id, Vocab: t.vocab}
		}
		buf = append(buf, b...)
	}
	text, rest := splitValid(buf)
	if len(rest) > 0 {
		text += replacement
	}
	return text, nil
}

// Bytes returns a copy of the raw bytes of one id, a special id's being its
// name. ok is false outside the vocabulary.
func (t *Tokenizer) Bytes(id int) (b []byte, ok bool) {
	s, ok := t.raw(id)
	return []byte(s), ok
}

func (t *Tokenizer) raw(id int) (string, bool) {
	switch {
	case id < 0 || id >= t.vocab:
		return "", false
	case id < t.base:
		return t.table.bytes(id), true
	default:
		return t.special.names[id-t.base], true
	}
}

// Special returns the id of a special name such as "<|open|>".
func (t *Tokenizer) Special(name string) (id int, ok bool) {
	id, ok = t.special.ids[name]
	return id, ok
}

// IsSpecial says whether id is one of the special ids, which ordinary text
// never yields.
func (t *Tokenizer) IsSpecial(id int) bool { return id >= t.base && id < t.vocab }

// Base is the first special id, which is also the number of ranks.
func (t *Tokenizer) Base() int { return t.base }

// Vocab is the number of ids; valid ones are 0..Vocab()-1.
func (t *Tokenizer) Vocab() int { return t.vocab }
