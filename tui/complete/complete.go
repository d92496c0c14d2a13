package complete

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"deltafin/tui/text"
)

// The bounds of a listing.
const (
	Most  = 5000
	Limit = time.Second
	batch = 256 // entries between two looks at the clock
)

// A Listing is the names in a folder, sorted, those of folders with a slash behind.
type Listing struct {
	Dir     string // as it was asked for: "" or with a slash behind
	Names   []string
	Partial bool // there are more
}

// Split divides what was typed into the folder, with its slash, and the beginning of
// a name in it.
func Split(path string) (dir, base string) {
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i], path[i:]
}

// List reads a folder, "" for the working one. Names that no line can show as they
// are, or that hold a double quote, are left out: they could not be typed.
func List(ctx context.Context, dir string) (*Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	name := dir
	if name == "" {
		name = "."
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &Listing{Dir: dir}
	for {
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			if n := e.Name(); text.CleanLine(n) == n && !strings.ContainsRune(n, '"') {
				if isDir(dir, e) {
					n += "/"
				}
				l.Names = append(l.Names, n)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(l.Names)
			return l, nil
		case err != nil:
			return nil, err
		case len(l.Names) >= Most || ctx.Err() != nil:
			l.Partial = true
			slices.Sort(l.Names)
			return l, nil
		}
	}
}

// isDir reports whether an entry is a folder or a link to one.
func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(dir + e.Name())
	return err == nil && info.IsDir()
}

// Match returns the names that begin with base. Hidden ones must be begun with their
// dot; without any match the case of letters does not count.
func (l *Listing) Match(base string) []string {
	var exact, folded []string
	for _, n := range l.Names {
		if n[0] == '.' && !strings.HasPrefix(base, ".") {
			continue
		}
		if strings.HasPrefix(n, base) {
			exact = append(exact, n)
		} else if len(n) >= len(base) && strings.EqualFold(n[:len(base)], base) {
			folded = append(folded, n)
		}
	}
	if exact == nil {
		return folded
	}
	return exact
}

// Common returns what all names begin with, whole letters of it.
func Common(names []string) string {
	if len(names) == 0 {
		return ""
	}
	common := names[0]
	for _, n := range names[1:] {
		i := 0
		for i < len(common) && i < len(n) && common[i] == n[i] {
			i++
		}
		common = common[:i]
	}
	return strings.ToValidUTF8(common, "")
}
