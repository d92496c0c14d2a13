package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"deltafin/session"
	"deltafin/tui"
)

// Threads implements tui.Backend.
func (b *backend) Threads(ctx context.Context, title string) ([]session.ThreadInfo, error) {
	k, err := b.desk()
	if err != nil {
		return nil, nil // none yet
	}
	return k.store.List(ctx, session.ListOptions{Title: title})
}

// Thread implements tui.Backend.
func (b *backend) Thread(ctx context.Context, id session.ID) (*session.Thread, error) {
	k, err := b.desk()
	if err != nil {
		return nil, err
	}
	return k.store.Load(ctx, id, session.LoadOptions{Bodies: true})
}

// Search implements tui.Backend.
func (b *backend) Search(ctx context.Context, query string) ([]session.Hit, error) {
	k, err := b.desk()
	if err != nil {
		return nil, err
	}
	return k.store.Search(ctx, query, session.SearchOptions{})
}

// Estimate implements tui.Backend.
func (b *backend) Estimate(ctx context.Context, q tui.Question) (tui.Cost, error) {
	k, err := b.desk()
	if err != nil {
		return tui.Cost{}, err
	}
	text, _, err := k.withFiles(q.Text, q.Files)
	if err != nil {
		return tui.Cost{}, err
	}
	c := tui.Cost{Tokens: len(k.e.Tokenizer().Encode(text))}
	e, err := k.store.Estimate(ctx, session.Work{Fingerprint: k.e.Info().Fingerprint, Prompt: c.Tokens})
	if errors.Is(err, session.ErrNoData) {
		return c, nil // nothing was measured yet: the tokens are known, the time is not
	}
	if err != nil {
		return c, err
	}
	c.Time = likely(e)
	c.First = c.Time.Prefill
	return c, nil
}

// maxAttached bounds what is read before its tokens are counted.
const maxAttached = 64 << 20

// withFiles appends the text of attached files to a question.
func (k *desk) withFiles(text string, files []tui.Attachment) (string, []session.Source, error) {
	all, sources, err := attachText(text, files)
	limit := k.e.Info().Config.MaxContext
	if err == nil && len(files) > 0 && len(all) > limit { // a token is at least a byte: only then can it be too much
		if n := len(k.e.Tokenizer().Encode(all)); n > limit {
			return "", nil, fmt.Errorf("%s is %s, about %s tokens, more than the context of %s: attach a range, such as @%s#1-4000",
				files[0].Path, humanize.Bytes(uint64(len(all))), humanize.Comma(int64(n)), humanize.Comma(int64(limit)), files[0].Path)
		}
	}
	return all, sources, err
}

// attachText is withFiles for who cannot count tokens.
func attachText(text string, files []tui.Attachment) (string, []session.Source, error) {
	if len(files) == 0 {
		return text, nil, nil
	}
	var out strings.Builder
	out.WriteString(text)
	var sources []session.Source
	for _, f := range files {
		names, err := expand(f.Path)
		if err != nil {
			return "", nil, err
		}
		for _, name := range names {
			body, err := readText(name, f.From, f.To)
			if err != nil {
				return "", nil, err
			}
			fmt.Fprintf(&out, "\n\n--- %s%s ---\n%s", filepath.ToSlash(name), lineRange(f), body)
			sources = append(sources, session.Source{
				Hash: contentHash(body), Name: filepath.Base(name), Kind: "file", Place: name,
				Bytes: int64(len(body)), Range: strings.TrimPrefix(lineRange(f), "#"),
			})
		}
	}
	return out.String(), sources, nil
}

func lineRange(f tui.Attachment) string {
	if f.From == 0 {
		return ""
	}
	return fmt.Sprintf("#%d-%d", f.From, f.To)
}

// expand lists the files that an attachment names: itself, those of a folder that are
// text, or those that match a pattern.
func expand(path string) ([]string, error) {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return []string{path}, nil
		}
		var names []string
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if hidden := strings.HasPrefix(d.Name(), ".") && p != path; d.IsDir() {
				if hidden {
					return filepath.SkipDir
				}
			} else if d.Type().IsRegular() && !hidden && isText(p) {
				names = append(names, p)
			}
			return nil
		})
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("%s has no text files in it: nothing was attached", path)
		}
		return names, err
	}
	names, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no %s here: nothing was attached", path)
	}
	return names, nil
}

// isText looks at the beginning of a file.
func isText(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 1024)
	n, _ := f.Read(head) // an empty or unreadable file is no text to attach
	return n > 0 && utf8.ValidString(strings.ToValidUTF8(string(head[:n]), "")) && !strings.ContainsRune(string(head[:n]), 0)
}

// readText reads a file, or lines of it.
func readText(name string, from, to int) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if info.Size() > maxAttached {
		return "", fmt.Errorf("%s is %s, more than can be attached: attach a range of lines of a smaller file", name, humanize.Bytes(uint64(info.Size())))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return "", fmt.Errorf("%s is not text in UTF-8: nothing was attached", name)
	}
	if from == 0 {
		return string(data), nil
	}
	lines := strings.SplitAfter(string(data), "\n")
	if from > len(lines) {
		return "", fmt.Errorf("%s has %d lines, asked for is %d: nothing was attached", name, len(lines), from)
	}
	return strings.Join(lines[from-1:min(to, len(lines))], ""), nil
}

// contentHash is the content address of a source.
func contentHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
