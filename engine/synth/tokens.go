package synth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// specials are the named special tokens, by distance from the first (spec 5.1).
var specials = []struct {
	at   int
	name string
}{
	{0, "[BOS]"}, {1, "[EOS]"}, {2, "<|end_of_msg|>"}, {3, "<|open|>"}, {4, "<|close|>"}, {5, "<|sep|>"},
	{6, "[start_header_id]"}, {7, "[end_header_id]"}, {9, "[EOT]"}, {18, "<|media_begin|>"},
	{19, "<|media_content|>"}, {20, "<|media_end|>"}, {21, "<|media_pad|>"}, {65, "<osagent_mode>"},
	{254, "[UNK]"}, {255, "[PAD]"},
}

// ranks is a rank file: the single bytes, then pairs, then triples of them, as many
// as there is room for before the special tokens. Each is made of two that come
// before it, as a merge must be.
func ranks(vocab int) []byte {
	var b bytes.Buffer
	for n := range vocab - 256 {
		var token []byte
		switch i := n - 256; {
		case i < 0:
			token = []byte{byte(n)}
		case i < 1<<16:
			token = []byte{byte(i >> 8), byte(i)}
		default:
			i -= 1 << 16
			token = []byte{byte(i >> 16), byte(i >> 8), byte(i)}
		}
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(token), n)
	}
	return b.Bytes()
}

// Tokenizer makes the files of a tokenizer of a vocabulary, at least 512: the rank
// file, and the configuration that names the special tokens.
func Tokenizer(vocab int) (rankFile, config []byte, err error) {
	added := map[string]any{}
	for _, s := range specials {
		added[fmt.Sprint(vocab-256+s.at)] = map[string]any{"content": s.name, "special": s.at < 3 || s.at > 5}
	}
	config, err = json.MarshalIndent(map[string]any{"added_tokens_decoder": added}, "", "  ")
	return ranks(vocab), config, err
}
