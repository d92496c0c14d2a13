package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"deltafin/tui/text"
)

// clause is where what happened ends and what is safe, or what to do, begins.
var clause = regexp.MustCompile(`[:;,] \S`)

// unsaid are texts of errors that decide what happens next and are never shown, and
// parts of longer ones.
var unsaid = map[string]bool{
	"watched to the end": true, "the engine is free to be taken": true, "no terminal to draw on": true,
	"ended from outside": true, "it did not end within %s and was ended": true,
}

// TestRefusals: every wish that the screen's backend refuses, and every line it says,
// has at least two parts, fits two rows of the reference window, and speaks of nothing
// inside.
func TestRefusals(t *testing.T) {
	var names []string
	for _, of := range []string{"backend*.go", "attach*.go", "screen*.go"} {
		more, err := filepath.Glob(of)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, more...)
	}
	n := 0
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(x ast.Node) bool {
			call, ok := x.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fun.Sel.Name != "New" && fun.Sel.Name != "Errorf" {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			if err != nil || len(strings.Fields(strings.ReplaceAll(s, "%w", ""))) < 3 {
				return true
			}
			if n++; unsaid[s] {
				return true
			}
			if !clause.MatchString(s) || internal.MatchString(s) || text.Width(s) > 2*78 || strings.HasSuffix(s, ".") {
				t.Errorf("%s: %q", files.Position(lit.Pos()), s)
			}
			return true
		})
	}
	if n < 8 {
		t.Errorf("only %d refusals were found", n)
	}
}
