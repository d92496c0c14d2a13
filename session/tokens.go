package session

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// How the tokens of a turn lie in the file.
//
//	ids:  one unsigned varint per token
//	lens: runs of one channel: uvarint(count<<2 | channel), then for a channel
//	      with text the byte length of every piece, two to a byte, low half
//	      first; 15 means "15 and more", and the surplus follows the run's
//	      halves as a uvarint, in order
//	sum:  CRC-32C over the turn's place (turnSum), every token (tokenSum), then
//	      over Text and Reasoning
//
// The text itself is stored once, in two columns; pieces are cut from it.
// A typical answer costs about 2.4 bytes a token beside its text.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tokenSum extends a checksum by one token. It covers order, channel, id and
// piece, so a lost, swapped or altered token changes it.
func tokenSum(sum uint32, t Token) uint32 {
	var head [9]byte
	binary.LittleEndian.PutUint32(head[:], uint32(t.ID))
	head[4] = byte(t.Channel)
	binary.LittleEndian.PutUint32(head[5:], uint32(len(t.Text)))
	sum = crc32.Update(sum, castagnoli, head[:])
	return crc32.Update(sum, castagnoli, []byte(t.Text))
}

// turnSum begins a turn's checksum: with who it is and where it stands, so that
// a text that ended up under another turn is noticed.
func turnSum(t turnRow) uint32 {
	var place [24]byte
	binary.LittleEndian.PutUint64(place[:], uint64(t.id))
	binary.LittleEndian.PutUint64(place[8:], uint64(t.thread))
	binary.LittleEndian.PutUint64(place[16:], uint64(t.parent))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, []byte(t.role))
}

// tokensSum extends a checksum by tokens.
func tokensSum(sum uint32, toks []Token) uint32 {
	for _, t := range toks {
		sum = tokenSum(sum, t)
	}
	return sum
}

// bodySum is the checksum stored with the body of a turn.
func bodySum(t turnRow, b *Body) uint32 {
	sum := tokensSum(turnSum(t), b.Tokens)
	sum = crc32.Update(sum, castagnoli, []byte(b.Text))
	return crc32.Update(sum, castagnoli, []byte(b.Reasoning))
}

func checkToken(t Token) error {
	switch {
	case t.ID < 0:
		return fmt.Errorf("%w: token id %d is negative", ErrInvalid, t.ID)
	case t.Channel > InAnswer:
		return fmt.Errorf("%w: token %d has channel %d, the last is %d", ErrInvalid, t.ID, t.Channel, InAnswer)
	case t.Channel == InMarkup && t.Text != "":
		return fmt.Errorf("%w: markup token %d has text %q; markup has none", ErrInvalid, t.ID, t.Text)
	}
	return nil
}

// packTokens writes ids and lens.
func packTokens(toks []Token) (ids, lens []byte) {
	ids = make([]byte, 0, 3*len(toks))
	for _, t := range toks {
		ids = binary.AppendUvarint(ids, uint64(t.ID))
	}
	for len(toks) > 0 {
		ch, n := toks[0].Channel, 1
		for n < len(toks) && toks[n].Channel == ch {
			n++
		}
		lens = binary.AppendUvarint(lens, uint64(n)<<2|uint64(ch))
		if ch != InMarkup {
			lens = packLengths(lens, toks[:n])
		}
		toks = toks[n:]
	}
	return ids, lens
}

func packLengths(lens []byte, run []Token) []byte {
	var surplus []byte
	for i, t := range run {
		n := len(t.Text)
		if n >= 15 {
			surplus = binary.AppendUvarint(surplus, uint64(n-15))
			n = 15
		}
		if i&1 == 0 {
			lens = append(lens, byte(n))
		} else {
			lens[len(lens)-1] |= byte(n << 4)
		}
	}
	return append(lens, surplus...)
}

// unpackTokens undoes packTokens: pieces are cut from text and reasoning, which
// must be used up exactly. Damaged input gives an ErrCorrupt, never a panic.
func unpackTokens(ids, lens []byte, text, reasoning string) ([]Token, error) {
	rest := [3]string{InThinking: reasoning, InAnswer: text}
	var toks []Token
	spoken := false
	for len(lens) > 0 {
		head, w := binary.Uvarint(lens)
		n, ch := head>>2, Channel(head&3)
		// A token takes at least a byte of ids: a larger count is damage, and
		// must not become an allocation.
		if w <= 0 || ch > InAnswer || n == 0 || n > uint64(len(ids)) {
			return nil, fmt.Errorf("%w: token run %d is malformed", ErrCorrupt, head)
		}
		lens = lens[w:]
		first := len(toks)
		for range n {
			id, w := binary.Uvarint(ids)
			if w <= 0 || id > 1<<31-1 {
				return nil, fmt.Errorf("%w: token id %d cannot be read", ErrCorrupt, len(toks))
			}
			ids = ids[w:]
			toks = append(toks, Token{ID: int32(id), Channel: ch})
		}
		if ch == InMarkup {
			continue
		}
		spoken = true
		var err error
		if lens, rest[ch], err = cutPieces(toks[first:], lens, rest[ch]); err != nil {
			return nil, err
		}
	}
	if len(ids) > 0 || spoken && (rest[InAnswer] != "" || rest[InThinking] != "") {
		return nil, fmt.Errorf("%w: %d bytes of ids and %d of text belong to no token", ErrCorrupt, len(ids), len(rest[InAnswer])+len(rest[InThinking]))
	}
	return toks, nil
}

// cutPieces gives every token of a run its piece of text and returns what is
// left of the lengths and of the text.
func cutPieces(run []Token, lens []byte, text string) ([]byte, string, error) {
	halves := (len(run) + 1) / 2
	if halves > len(lens) {
		return nil, "", fmt.Errorf("%w: %d token lengths end after %d bytes", ErrCorrupt, len(run), len(lens))
	}
	packed, lens := lens[:halves], lens[halves:]
	for i := range run {
		n := uint64(packed[i/2]>>(4*(i&1))) & 15
		if n == 15 {
			more, w := binary.Uvarint(lens)
			if w <= 0 {
				return nil, "", fmt.Errorf("%w: a token length is cut off", ErrCorrupt)
			}
			lens = lens[w:]
			n += more
		}
		if n > uint64(len(text)) {
			return nil, "", fmt.Errorf("%w: a token wants %d bytes of text, %d are left", ErrCorrupt, n, len(text))
		}
		run[i].Text, text = text[:n], text[n:]
	}
	return lens, text, nil
}

// textsOf joins the pieces of each channel.
func textsOf(toks []Token) (text, reasoning string) {
	var parts [3]strings.Builder
	for _, t := range toks {
		parts[t.Channel].WriteString(t.Text)
	}
	return parts[InAnswer].String(), parts[InThinking].String()
}
