package place

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// errNotBelow: a folder does not lie below another.
var errNotBelow = errors.New("the model's folder does not lie on this drive's folder")

// Below gives dir relative to root, slash-separated ("" if they are the same).
// The error says that dir does not lie in root. Links are followed in both, so
// that it does not matter how either was written.
func Below(root, dir string) (string, error) {
	r, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	d, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if r, err = filepath.Abs(r); err != nil {
		return "", err
	}
	if d, err = filepath.Abs(d); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r, d)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not in %s: %w", dir, root, errNotBelow)
	}
	if rel == "." {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}

// slash joins a folder, which may be empty, and a name.
func slash(dir, name string) string { return path.Join(dir, name) }
