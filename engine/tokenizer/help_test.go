package tokenizer

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Sizes of the vocabularies under test.
const (
	nanoVocab = 4096
	k3Vocab   = 163840
)

var nanoOnce = sync.OnceValues(func() (*Tokenizer, error) {
	return Load(os.DirFS("testdata/nano"), nanoVocab)
})

// nano returns the tokenizer of the demonstration model.
func nano(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := nanoOnce()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// sharedDir returns a folder under the data folder beside the module, or skips.
func sharedDir(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
	path := filepath.Join(append([]string{filepath.Dir(dir), "shared"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("third-party data is not here: %v", err)
	}
	return path
}

var k3Once sync.Once
var k3Tok *Tokenizer
var k3Err error

// k3 returns a tokenizer with the official rank file and the official names,
// or skips.
func k3(t testing.TB) *Tokenizer {
	t.Helper()
	dir := sharedDir(t, "data", "kimi-tokenizer")
	k3Once.Do(func() { k3Tok, k3Err = Load(os.DirFS(dir), k3Vocab) })
	if k3Err != nil {
		t.Fatal(k3Err)
	}
	return k3Tok
}

func readJSON(t testing.TB, fsys fs.FS, name string, v any) {
	t.Helper()
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
