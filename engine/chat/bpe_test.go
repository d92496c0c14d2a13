package chat

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// slowBPE is a tokenizer of a few lines, so that the ids of rendered prompts can
// be checked here: this package knows no other. It is right for texts whose
// white space is ASCII.
type slowBPE struct {
	ranks map[string]int
	names map[string]int
	base  int
}

var piece = regexp.MustCompile(`^(?:\p{Han}+` +
	`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
	`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
	`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+)`)

func loadBPE(t testing.TB, dir string) *slowBPE {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "tiktoken.model"))
	if err != nil {
		t.Fatal(err)
	}
	e := &slowBPE{ranks: map[string]int{}, names: map[string]int{}}
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		code, number, _ := strings.Cut(sc.Text(), " ")
		b, _ := base64.StdEncoding.DecodeString(code)
		e.ranks[string(b)], _ = strconv.Atoi(number)
	}
	e.base = len(e.ranks)
	for i, name := range map[int]string{
		0: "[BOS]", 1: "[EOS]", 2: markEndOfMsg, 3: markOpen, 4: markClose, 5: markSep, 9: "[EOT]",
		18: "<|media_begin|>", 20: "<|media_end|>",
	} {
		e.names[name] = e.base + i
	}
	return e
}

func (e *slowBPE) Base() int { return e.base }

func (e *slowBPE) Special(name string) (int, bool) {
	id, ok := e.names[name]
	return id, ok
}

func (e *slowBPE) Append(dst []int, text string) []int {
	for text != "" {
		p := piece.FindString(text)
		if n := len(p); n > 1 && n < len(text) && strings.TrimRight(p, " \t") == "" {
			p = p[:n-1] // \s+(?!\S): the last one belongs to what follows
		}
		text = text[len(p):]
		var parts []string
		for i := range len(p) {
			parts = append(parts, p[i:i+1])
		}
		for {
			best, at := len(e.ranks), -1
			for i := range len(parts) - 1 {
				if r, ok := e.ranks[parts[i]+parts[i+1]]; ok && r < best {
					best, at = r, i
				}
			}
			if at < 0 {
				break
			}
			parts[at] += parts[at+1]
			parts = append(parts[:at+1], parts[at+2:]...)
		}
		for _, part := range parts {
			dst = append(dst, e.ranks[part])
		}
	}
	return dst
}

// words returns the bytes of every id.
func (e *slowBPE) words() map[int]string {
	out := make(map[int]string, len(e.ranks))
	for b, r := range e.ranks {
		out[r] = b
	}
	for name, id := range e.names {
		out[id] = name
	}
	return out
}

// nanoDir holds the tokenizer of the demonstration model.
const nanoDir = "../tokenizer/testdata/nano"

// sharedDir returns a folder under the data folder beside the module, or skips.
func sharedDir(t testing.TB, parts ...string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(append([]string{filepath.Dir(root), "shared"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("third-party data is not here: %v", err)
	}
	return path
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// fnv is FNV-1a 64 over the four little-endian bytes of each number, in hex.
func fnv(values []uint32) string {
	h := uint64(0xcbf29ce484222325)
	for _, v := range values {
		for range 4 {
			h = (h ^ uint64(v&0xff)) * 0x100000001b3
			v >>= 8
		}
	}
	return fmt.Sprintf("%016x", h)
}
