package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
)

const (
	// minSpecials ids follow the ranks in every model of the family (spec 5.1).
	minSpecials = 256
	// maxSpecials bounds a vocabulary padded beyond that.
	maxSpecials = 1 << 16
	// maxConfigFile bounds tokenizer_config.json; the official one has a few KB.
	maxConfigFile = 16 << 20
)

// officialNames are the names of the K3 special ids by offset from the first
// (spec 5.1). Ids without an entry are called <|reserved_token_ID|>.
func officialNames() map[int]string {
	return map[int]string{
		0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>",
		6: "[start_header_id]", 7: "[end_header_id]", 9: "[EOT]",
		18: "<|media_begin|>", 19: "<|media_content|>", 20: "<|media_end|>", 21: "<|media_pad|>",
		65: "<osagent_mode>", 254: "[UNK]", 255: "[PAD]",
	}
}

// specials knows the names of the special ids, both ways.
type specials struct {
	names []string       // [vocab-base] name of id base+i
	ids   map[string]int // name -> id

	first   [256]bool // bytes that begin a name
	lengths []int     // lengths of names, longest first
}

// loadSpecials reads the names from tokenizer_config.json, or takes the
// official ones when there is no such file.
func loadSpecials(fsys fs.FS, base, vocab int) (*specials, error) {
	f, err := fsys.Open(configFileName)
	if errors.Is(err, fs.ErrNotExist) {
		named := map[int]string{}
		for off, name := range officialNames() {
			named[base+off] = name
		}
		return newSpecials(named, base, vocab)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfigFile {
		return nil, fmt.Errorf("larger than %d bytes", maxConfigFile)
	}
	named, err := parseConfig(text)
	if err != nil {
		return nil, err
	}
	return newSpecials(named, base, vocab)
}

// parseConfig returns id -> name from added_tokens_decoder. Its absence is an
// error: falling back on other names would turn every marker into plain text
// without a word (spec 8, pitfall 31).
func parseConfig(text []byte) (map[int]string, error) {
	var config struct {
		Added map[string]struct {
			Content string `json:"content"`
		} `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	if len(config.Added) == 0 {
		return nil, errors.New("added_tokens_decoder is missing or empty: the special ids have no names")
	}
	named := make(map[int]string, len(config.Added))
	for key, token := range config.Added {
		id, err := strconv.Atoi(key)
		if err != nil || strconv.Itoa(id) != key {
			return nil, fmt.Errorf("added_tokens_decoder: key %.40q is not a token id", key)
		}
		if token.Content == "" {
			return nil, fmt.Errorf("added_tokens_decoder: id %d has an empty name", id)
		}
		named[id] = token.Content
	}
	return named, nil
}

func newSpecials(named map[int]string, base, vocab int) (*specials, error) {
	s := &specials{names: make([]string, vocab-base), ids: make(map[string]int, vocab-base)}
	// In order of id, so that the same file always gives the same error.
	for _, id := range slices.Sorted(maps.Keys(named)) {
		if id < base || id >= vocab {
			return nil, fmt.Errorf("added_tokens_decoder: id %d (%.40q) is not among the special ids %d..%d", id, named[id], base, vocab-1)
		}
		s.names[id-base] = named[id]
	}
	lengths := map[int]bool{}
	for i, name := range s.names {
		id := base + i
		if name == "" {
			name = fmt.Sprintf("<|reserved_token_%d|>", id)
			s.names[i] = name
		}
		if other, ok := s.ids[name]; ok {
			return nil, fmt.Errorf("added_tokens_decoder: ids %d and %d share the name %.40q", other, id, name)
		}
		s.ids[name] = id
		s.first[name[0]] = true
		lengths[len(name)] = true
	}
	s.lengths = slices.SortedFunc(maps.Keys(lengths), func(a, b int) int { return b - a })
	return s, nil
}

// find returns the first special name in text, text[at:end], and its id; id is
// -1 when there is none. Names have a handful of different lengths, so a look
// into the map per length and candidate position is all it takes.
func (s *specials) find(text string) (at, end, id int) {
	for i := 0; i < len(text); i++ {
		if !s.first[text[i]] {
			continue
		}
		for _, n := range s.lengths {
			if n > len(text)-i {
				continue
			}
			if id, ok := s.ids[text[i:i+n]]; ok {
				return i, i + n, id
			}
		}
	}
	return 0, 0, -1
}
