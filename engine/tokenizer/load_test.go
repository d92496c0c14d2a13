package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// bytesFile returns the lines of a rank file of the 256 single bytes, in an
// order of no meaning, followed by extra tokens.
func bytesFile(extra ...string) []string {
	var lines []string
	for i := range 256 {
		lines = append(lines, rankLine(string([]byte{byte(i*7 + 3)}), i))
	}
	for i, e := range extra {
		lines = append(lines, rankLine(e, 256+i))
	}
	return lines
}

func rankLine(token string, rank int) string {
	return fmt.Sprintf("%s %d", base64.StdEncoding.EncodeToString([]byte(token)), rank)
}

// model returns a model directory of these files.
func model(lines []string, config string) fs.FS {
	m := fstest.MapFS{rankFileName: {Data: []byte(strings.Join(lines, "\n") + "\n")}}
	if config != "" {
		m[configFileName] = &fstest.MapFile{Data: []byte(config)}
	}
	return m
}

// edit returns lines with one of them replaced.
func edit(lines []string, i int, line string) []string {
	out := append([]string(nil), lines...)
	out[i] = line
	return out
}

func TestLoadAccepts(t *testing.T) {
	lines := bytesFile("ab", "abc")
	swapped := append([]string(nil), lines...)
	swapped[0], swapped[257] = swapped[257], swapped[0]
	for name, fsys := range map[string]fs.FS{
		"as it should be":  model(lines, ""),
		"ranks not sorted": model(swapped, ""),
		"line ends of DOS": model([]string{strings.Join(lines, "\r\n") + "\r"}, ""),
		"empty lines":      model(append([]string{"", ""}, append(lines, "", "")...), ""),
	} {
		tok, err := Load(fsys, 258+256)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := tok.Encode("abcab"); fmt.Sprint(got) != "[257 256]" {
			t.Errorf("%s: ids %v, want [257 256]", name, got)
		}
		if id, ok := tok.Special("<|open|>"); !ok || id != 258+3 {
			t.Errorf("%s: <|open|> is %d, %v", name, id, ok)
		}
	}
}

// TestLoadRefuses: each error says where and what.
func TestLoadRefuses(t *testing.T) {
	lines := bytesFile("ab", "abc")
	const vocab = 258 + 256
	for _, c := range []struct {
		name  string
		fsys  fs.FS
		vocab int
		want  string // every word must be in the error
	}{
		{"no rank file", fstest.MapFS{}, vocab, "tiktoken.model"},
		{"empty rank file", model(nil, ""), vocab, "tiktoken.model no ranks"},
		{"no space", model(edit(lines, 9, "IQ=="), ""), vocab, "tiktoken.model line 10 space"},
		{"bad base64", model(edit(lines, 9, "I*== 9"), ""), vocab, "line 10 base64"},
		{"base64 without padding", model(edit(lines, 9, "IQ 9"), ""), vocab, "line 10 base64"},
		{"base64 with stray bits", model(edit(lines, 9, "IR== 9"), ""), vocab, "line 10 base64"},
		{"no bytes", model(edit(lines, 9, " 9"), ""), vocab, "line 10 no bytes"},
		{"bad rank", model(edit(lines, 9, "IQ== nine"), ""), vocab, "line 10 rank nine"},
		{"negative rank", model(edit(lines, 9, "IQ== -9"), ""), vocab, "line 10 rank -9"},
		{"huge rank", model(edit(lines, 9, "IQ== 99999999999999999999"), ""), vocab, "line 10 rank 99999999999999999999"},
		{"two spaces", model(edit(lines, 9, "IQ==  9"), ""), vocab, "line 10 rank"},
		{"rank twice", model(edit(lines, 9, rankLine("xyz", 4)), ""), vocab, "line 10 rank 4 line 5"},
		{"gap", model(edit(lines, 257, rankLine("abc", 300)), ""), vocab, "line 258 rank 300 258 tokens gaps"},
		{"bytes twice", model(edit(lines, 257, rankLine("ab", 257)), ""), vocab, `line 258 "ab" rank 256 line 257`},
		{"single byte missing", model(edit(lines, 0, rankLine("xyz", 0)), ""), vocab, "byte 0x03"},
		{"endless line", model([]string{lines[0], strings.Repeat("A", maxRankLine+1)}, ""), vocab, "line 2 longer"},
		{"vocabulary too small", model(lines, ""), vocab - 1, "258 513 514"},
		{"vocabulary too large", model(lines, ""), 258 + maxSpecials + 1, "258 65795 65536"},
		{"no vocabulary", model(lines, ""), 0, "vocabulary 0"},
		{"absurd vocabulary", model(lines, ""), maxVocab + 1, "vocabulary 16777217"},
		{"config is no JSON", model(lines, "{"), vocab, "tokenizer_config.json JSON"},
		{"config without names", model(lines, "{}"), vocab, "tokenizer_config.json added_tokens_decoder missing"},
		{"id is no number", model(lines, `{"added_tokens_decoder":{"x":{"content":"a"}}}`), vocab, "key x id"},
		{"id with a plus", model(lines, `{"added_tokens_decoder":{"+258":{"content":"a"}}}`), vocab, "key +258"},
		{"no name", model(lines, `{"added_tokens_decoder":{"258":{}}}`), vocab, "258 empty name"},
		{"id of a rank", model(lines, `{"added_tokens_decoder":{"257":{"content":"a"}}}`), vocab, "257 a 258..513"},
		{"id beyond", model(lines, `{"added_tokens_decoder":{"514":{"content":"a"}}}`), vocab, "514 a 258..513"},
		{"name twice", model(lines, `{"added_tokens_decoder":{"258":{"content":"a"},"300":{"content":"a"}}}`), vocab, "258 300 share a"},
		{"name of a reserved id", model(lines, `{"added_tokens_decoder":{"258":{"content":"<|reserved_token_300|>"}}}`), vocab, "258 300 share"},
	} {
		_, err := Load(c.fsys, c.vocab)
		if err == nil {
			t.Errorf("%s: no error, want one with %q", c.name, c.want)
			continue
		}
		for _, word := range strings.Fields(c.want) {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: error %q does not say %q", c.name, err, word)
			}
		}
	}
	if _, err := Load(fstest.MapFS{}, vocab); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing rank file gives %v, which is not fs.ErrNotExist", err)
	}
}

func TestReadErrorIsReported(t *testing.T) {
	disk := errors.New("disk on fire")
	r := io.MultiReader(strings.NewReader(rankLine("a", 0)+"\n"), errReader{disk})
	if _, err := readRanks(r); !errors.Is(err, disk) || !strings.Contains(err.Error(), "after line 1") {
		t.Errorf("error %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestSpecialNames: the longest name wins, whatever the order of the ids.
func TestSpecialNames(t *testing.T) {
	tok, err := Load(model(bytesFile(), `{"added_tokens_decoder":{"256":{"content":"<a"},"257":{"content":"<a>"},"260":{"content":"é"}}}`), 512)
	if err != nil {
		t.Fatal(err)
	}
	one := func(s string) int { return tok.Encode(s)[0] }
	want := []int{257, 256, one("b"), 260, one("<"), 511}
	if got := tok.EncodeSpecial("<a><abé<<|reserved_token_511|>"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ids %v, want %v", got, want)
	}
}

func FuzzRankFile(f *testing.F) {
	nano, err := os.ReadFile("testdata/nano/tiktoken.model")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(nano[:3000])
	f.Add([]byte(strings.Join(bytesFile("ab"), "\n")))
	f.Add([]byte("IQ== 0\nIg== 1\n"))
	f.Add([]byte("IQ== 1\nIQ== 1\r\n\n"))
	f.Add([]byte("IQ== 4294967296"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ranks, err := readRanks(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		table, err := newLookup(ranks)
		if err != nil {
			return
		}
		for r := range table.len() {
			if got := table.find(table.bytes(r)); got != uint32(r) {
				t.Fatalf("the bytes of rank %d are found as %d", r, got)
			}
		}
		ids := table.appendPiece(nil, "any piece will do")
		back := ""
		for _, id := range ids {
			back += table.bytes(id)
		}
		if back != "any piece will do" {
			t.Fatalf("ids %v are %q", ids, back)
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"added_tokens_decoder":{"258":{"content":"a"},"259":{"content":"b","special":true}}}`))
	f.Add([]byte(`{"added_tokens_decoder":{"-1":{"content":""}}}`))
	f.Add([]byte(`[`))
	lines := bytesFile("ab", "abc")
	f.Fuzz(func(t *testing.T, config []byte) {
		tok, err := Load(fstest.MapFS{
			rankFileName:   {Data: []byte(strings.Join(lines, "\n"))},
			configFileName: {Data: config},
		}, 258+256)
		if err != nil {
			return
		}
		for id := range tok.Vocab() {
			name, ok := tok.Bytes(id)
			if !ok || len(name) == 0 {
				t.Fatalf("id %d has no bytes", id)
			}
			if got, ok := tok.Special(string(name)); tok.IsSpecial(id) && (!ok || got != id) {
				t.Fatalf("the name of id %d is that of %d", id, got)
			}
		}
	})
}
