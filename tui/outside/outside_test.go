package outside

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"vim", []string{"vim"}},
		{"  code  --wait\t", []string{"code", "--wait"}},
		{`sh -c "notify-send 'it is done'"`, []string{"sh", "-c", "notify-send 'it is done'"}},
		{`a '' "b c"d`, []string{"a", "", "b cd"}},
		{`say 'a\b' 界`, []string{"say", `a\b`, "界"}},
	} {
		if got, err := Words(c.in); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v", c.in, got, err)
		}
	}
	if runtime.GOOS != "windows" {
		if got, err := Words(`my\ editor "a\"b\n"`); err != nil || !slices.Equal(got, []string{"my editor", `a"b\n`}) {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, in := range []string{"", " \t", "''", `""`} {
		if _, err := Words(in); !errors.Is(err, ErrNoCommand) {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := Words(`a "b`); err == nil || !strings.Contains(err.Error(), "not closed") {
		t.Errorf("an open quote: %v", err)
	}
}

// FuzzWords: words that are quoted come back as they were.
func FuzzWords(f *testing.F) {
	f.Add("a b", `c"d`)
	f.Add("", "界 '")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, '\'') || a == "" {
			return
		}
		got, err := Words("'" + a + "' '" + b + "'")
		want := []string{string([]rune(a)), string([]rune(b))}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
}

// self is a program that is certainly there.
func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFind(t *testing.T) {
	if got, err := Find(self(t)); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Find("no-such-program --now"); err == nil || !strings.Contains(err.Error(), "no-such-program cannot be started") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestDraft: what an editor may leave behind.
func TestDraft(t *testing.T) {
	for _, c := range []struct {
		name, before, wrote, want string
		changed                   bool
		fails                     string
	}{
		{"untouched", "a", "a", "a", false, ""},
		{"a line break at the end is the editor's", "a", "a\n", "a", false, ""},
		{"changed", "a", "b\r\nc\n", "b\nc", true, ""},
		{"a line break that was there stays", "a\n", "b\n", "b\n", true, ""},
		{"emptied", "a", "", "", true, ""},
		{"no text", "a", "\xff", "", true, "UTF-8"},
		{"too long", "a", strings.Repeat("x", MaxText+1), "", true, "attach the file with @"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := NewDraft(`"`+strings.ReplaceAll(self(t), `\`, `/`)+`" --flag`, c.before)
			if err != nil {
				t.Fatal(err)
			}
			defer os.Remove(d.Path)
			info, err := os.Stat(d.Path)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if args := d.Command(t.Context()).Args; len(args) != 3 || args[1] != "--flag" || args[2] != d.Path {
				t.Errorf("started as %q", args)
			}
			if err := os.WriteFile(d.Path, []byte(c.wrote), 0o600); err != nil {
				t.Fatal(err)
			}
			text, changed, err := d.Text()
			if text != c.want || changed != c.changed || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%q, %v, %v", text, changed, err)
			}
			if err := d.Remove(); err != nil {
				t.Error(err)
			}
			if _, _, err := d.Text(); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file that is gone: %v", err)
			}
		})
	}
	if _, err := NewDraft("no-such-editor", "a"); err == nil {
		t.Error("an editor that is not there")
	}
}
