package deltafin

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxLines is the longest a hand-written Go file may be. Longer ones hold more
// than one idea.
const maxLines = 600

// A source is one parsed Go file of the module.
type source struct {
	path  string // slash-separated, from the module root
	dir   string
	test  bool
	lines int
	gen   bool // carries the standard "generated" mark
	file  *ast.File
}

// sources parses every Go file of the module. Directories that the go command
// ignores (testdata, leading dot or underscore) are ignored here too.
func sources(t *testing.T) ([]source, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (name == "testdata" || name[0] == '.' || name[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		lines := 0
		for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
			lines++
		}
		out = append(out, source{
			path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"),
			lines: lines, gen: ast.IsGenerated(f), file: f,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no sources found: the test must run in the module root")
	}
	return out, fset
}

// rooms lists what each part of the tree may import of the module, longest
// prefix first. A room may always import itself and what lies below it. The
// reasons stand in the package comments of the rooms.
var rooms = []struct {
	dir     string
	allowed []string // module paths without "deltafin/", as prefixes; "*" is everything
	stdOnly bool     // besides those: the standard library and golang.org/x/sys alone
}{
	{"cmd", []string{"*"}, false},
	{"tui", []string{"tui", "session"}, false},
	{"session/run", []string{"session", "engine"}, false},
	{"session", []string{"session"}, false},
	{"engine/kernel", []string{"engine/kernel"}, true},
	{"engine/tokenizer", []string{"engine/tokenizer"}, true},
	{"engine/chat", []string{"engine/chat"}, true},
	{"engine/sample", []string{"engine/sample"}, true},
	{"engine/lookup", []string{"engine/lookup"}, true},
	{"engine", []string{"engine", "ssdio"}, false},
	{"ssdio", []string{"ssdio"}, true},
	{".", nil, true},
}

func under(dir, prefix string) bool {
	return dir == prefix || strings.HasPrefix(dir, prefix+"/")
}

func TestImportsFollowTheRooms(t *testing.T) {
	srcs, _ := sources(t)
	for _, s := range srcs {
		for _, spec := range s.file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := forbidden(s.dir, imp, s.test); why != "" {
				t.Errorf("%s imports %q: %s", s.path, imp, why)
			}
		}
	}
}

// forbidden says why a file in dir may not import imp, or "".
func forbidden(dir, imp string, test bool) string {
	for _, r := range rooms {
		if !under(dir, r.dir) && r.dir != "." {
			continue
		}
		inner, ours := strings.CutPrefix(imp, "deltafin/")
		switch {
		case !ours:
			std := !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".")
			if r.stdOnly && !std && !under(imp, "golang.org/x/sys") {
				return r.dir + " uses only the standard library and golang.org/x/sys"
			}
			return ""
		case slices.Contains(r.allowed, "*"):
			return ""
		case slices.ContainsFunc(r.allowed, func(a string) bool { return under(inner, a) }):
			// session/run is the one room that joins session and engine: the
			// rest of session must not reach engine through it.
			if r.dir == "session" && under(inner, "session/run") && !under(dir, "session/run") {
				return "session must not know the engine, so not session/run either"
			}
			return ""
		default:
			return r.dir + " may import only " + strings.Join(r.allowed, ", ")
		}
	}
	return "no rule covers " + dir + ": give it a room in rules_test.go"
}

func TestForbiddenCatches(t *testing.T) {
	for _, c := range []struct {
		dir, imp string
		ok       bool
	}{
		{"engine/kernel", "deltafin/engine/checkpoint", false},
		{"engine/kernel", "golang.org/x/sys/cpu", true},
		{"engine/chat", "github.com/spf13/cobra", false},
		{"session", "deltafin/engine", false},
		{"session", "deltafin/session/run", false},
		{"session/run", "deltafin/engine", true},
		{"session/run", "deltafin/session", true},
		{"tui/pane", "deltafin/engine/k3", false},
		{"engine/k3", "deltafin/ssdio", true},
		{"engine/lookup", "deltafin/engine/k3", false},
		{"ssdio/place", "deltafin/ssdio", true},
		{"ssdio", "deltafin/engine/checkpoint", false},
		{"cmd/deltafin", "deltafin/tui", true},
		{"tools", "fmt", true},
	} {
		if got := forbidden(c.dir, c.imp, false) == ""; got != c.ok {
			t.Errorf("%s importing %s: allowed %v, want %v", c.dir, c.imp, got, c.ok)
		}
	}
}

func TestEveryPackageHasADocFile(t *testing.T) {
	srcs, _ := sources(t)
	doc := map[string]bool{}
	for _, s := range srcs {
		if s.test {
			continue
		}
		has := path.Base(s.path) == "doc.go" && s.file.Doc != nil && len(s.file.Doc.Text()) > 80
		doc[s.dir] = doc[s.dir] || has
	}
	for dir, has := range doc {
		if !has {
			t.Errorf("%s: no doc.go that says what the package owns and what it never does", dir)
		}
	}
}

func TestExportedThingsAreDocumented(t *testing.T) {
	srcs, fset := sources(t)
	for _, s := range srcs {
		if s.test || s.gen || s.file.Name.Name == "main" {
			continue
		}
		for _, d := range s.file.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: exported %s has no doc comment", fset.Position(d.Pos()), name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that nothing explains.
// One comment over a group covers the group.
func undocumented(d ast.Decl) []string {
	var out []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			out = append(out, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					out = append(out, spec.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					if n.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						out = append(out, n.Name)
					}
				}
			}
		}
	}
	return out
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if gen, ok := typ.(*ast.IndexExpr); ok {
		typ = gen.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func TestFilesStayShort(t *testing.T) {
	srcs, _ := sources(t)
	for _, s := range srcs {
		if !s.gen && s.lines > maxLines {
			t.Errorf("%s has %d lines, the most is %d: split it by idea", s.path, s.lines, maxLines)
		}
	}
}

// TestNothingSleepsOrPrints: waiting is done on events and injected clocks, and
// libraries hand text to their caller. Only the program itself writes to the
// terminal, and only through its own writers.
func TestNothingSleepsOrPrints(t *testing.T) {
	srcs, fset := sources(t)
	for _, s := range srcs {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") && id.Obj == nil {
				t.Errorf("%s: built-in %s", fset.Position(n.Pos()), id.Name)
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || pkg.Obj != nil {
				return true
			}
			switch name := pkg.Name + "." + sel.Sel.Name; name {
			case "time.Sleep":
				t.Errorf("%s: %s; wait for an event or an injected clock", fset.Position(n.Pos()), name)
			case "fmt.Print", "fmt.Printf", "fmt.Println", "log.Print", "log.Printf", "log.Println", "log.Fatal", "log.Fatalf":
				t.Errorf("%s: %s; write to a writer that the caller gave", fset.Position(n.Pos()), name)
			}
			return true
		})
	}
}

func TestSourcesNameNoMachine(t *testing.T) {
	srcs, fset := sources(t)
	for _, s := range srcs {
		if s.path == "rules_test.go" {
			continue
		}
		for _, g := range s.file.Comments {
			low := strings.ToLower(g.Text())
			for _, word := range []string{"/work/", "/root/", "/tmp/bash"} {
				if strings.Contains(low, word) {
					t.Errorf("%s: comment names %q", fset.Position(g.Pos()), word)
				}
			}
		}
	}
}
