package complete

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// folder makes files, and folders of names that end in a slash.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		var err error
		if n[len(n)-1] == '/' {
			err = os.Mkdir(filepath.Join(dir, n), 0o755)
		} else {
			err = os.WriteFile(filepath.Join(dir, n), nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.ToSlash(dir) + "/"
}

func TestListAndMatch(t *testing.T) {
	dir := folder(t, "notes.md", "Notes.txt", "no/", ".hidden", "a b", "界.md", "界面.md")
	l, err := List(t.Context(), dir)
	if err != nil || l.Partial || l.Dir != dir {
		t.Fatalf("%+v, %v", l, err)
	}
	for base, want := range map[string][]string{
		"":     {"Notes.txt", "a b", "no/", "notes.md", "界.md", "界面.md"},
		"no":   {"no/", "notes.md"},
		"N":    {"Notes.txt"},
		"NOT":  {"Notes.txt", "notes.md"},
		".":    {".hidden"},
		"zzz":  nil,
		"a ":   {"a b"},
		"no/x": nil,
	} {
		if got := l.Match(base); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", base, got, want)
		}
	}
	if got := Common(l.Match("no")); got != "no" {
		t.Errorf("common %q", got)
	}
	if got := Common(l.Match("界")); got != "界" {
		t.Errorf("common %q: a letter was cut", got)
	}
	if Common(nil) != "" {
		t.Error("nothing in common of nothing")
	}
}

func TestListIsBounded(t *testing.T) {
	dir := t.TempDir() + "/"
	for i := range Most + 2*batch {
		if err := os.WriteFile(fmt.Sprintf("%sf%d", dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := List(t.Context(), dir)
	if err != nil || !l.Partial || len(l.Names) > Most+batch {
		t.Errorf("%d names, partial %v, %v", len(l.Names), l.Partial, err)
	}
}

func TestListFails(t *testing.T) {
	if _, err := List(t.Context(), t.TempDir()+"/nothing/"); err == nil {
		t.Error("a folder that is not there")
	}
}

func TestSplit(t *testing.T) {
	for in, want := range map[string][2]string{"": {"", ""}, "a": {"", "a"}, "a/b": {"a/", "b"}, "/": {"/", ""}, "../x/": {"../x/", ""}} {
		if dir, base := Split(in); dir != want[0] || base != want[1] {
			t.Errorf("%q: %q, %q", in, dir, base)
		}
	}
}
