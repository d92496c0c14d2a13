package export

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"deltafin/session"
)

//go:embed page.html
var pageText string

// The data of page.html.
type (
	page struct {
		Title, ID, Begun string
		Parts            []pagePart
	}
	pagePart struct {
		Name, Follows, Anchor string // of the first part, only turns
		Turns                 []pageTurn
	}
	pageTurn struct {
		ID, Class, Speaker, Clock, State string
		Plain                            string        // text as it was typed
		Text, Thinking                   template.HTML // rendered Markdown
		ThinkingTokens                   string
		Damaged                          bool
		Facts                            string
		Sources                          []pageSource
	}
	pageSource struct{ Name, More string }
)

// HTML writes a thread loaded with its bodies as one file that needs no other
// and runs nothing. Answers are rendered from Markdown; questions are shown as
// they were typed.
func HTML(w io.Writer, th *session.Thread, opt *Options) error {
	o := opt.fill()
	tmpl, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("exporting HTML: %w", err)
	}
	md := newMarkdown()
	p := page{Title: th.Title, ID: th.ID.String(), Begun: o.clock(th.Created)}
	if p.Title == "" {
		p.Title = "Thread " + th.ID.Short()
	}
	for i, in := range outline(th) {
		out := pagePart{}
		if i > 0 {
			out = pagePart{Name: in.name, Follows: follows(in)}
			if in.after != 0 {
				out.Anchor = in.after.Short()
			}
		}
		for j := range in.turns {
			t, err := o.turnHTML(md, &in.turns[j])
			if err != nil {
				return err
			}
			out.Turns = append(out.Turns, t)
		}
		p.Parts = append(p.Parts, out)
	}
	if err := tmpl.Execute(w, p); err != nil {
		return fmt.Errorf("exporting HTML: %w", err)
	}
	return nil
}

func (o Options) turnHTML(md goldmark.Markdown, t *session.Turn) (pageTurn, error) {
	out := pageTurn{
		ID: t.ID.Short(), Class: strings.ToLower(speaker(t)), Speaker: speaker(t), Clock: o.clock(t.Created), State: state(t),
		Facts: strings.Join(facts(t), " · "), Damaged: t.Body == nil,
	}
	for _, src := range t.Sources {
		out.Sources = append(out.Sources, pageSource{src.Name, sourceLine(src)})
	}
	if t.Body == nil {
		return out, nil
	}
	if t.Role != session.Assistant {
		out.Plain = strings.ToValidUTF8(t.Body.Text, "\uFFFD")
		return out, nil
	}
	var err error
	if out.Text, err = render(md, t.Body.Text); err == nil && o.Thinking {
		out.Thinking, err = render(md, t.Body.Reasoning)
		out.ThinkingTokens = tokenCount(t.Thinking)
	}
	return out, err
}

func render(md goldmark.Markdown, text string) (template.HTML, error) {
	var b bytes.Buffer
	if err := md.Convert([]byte(strings.ToValidUTF8(text, "\uFFFD")), &b); err != nil {
		return "", fmt.Errorf("exporting HTML: %w", err)
	}
	return template.HTML(b.String()), nil
}

// newMarkdown renders GitHub's Markdown, but treats what a model wrote as text
// to be read: its HTML is shown, its images are links. Without the unsafe
// option the renderer also drops links that would run something.
func newMarkdown() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(textOnly{}, 100))),
	)
}

// textOnly renders what would otherwise be markup or a request.
type textOnly struct{}

// RegisterFuncs replaces the rendering of HTML and images.
func (textOnly) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindImage, imageLink)
}

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.HTMLBlock)
	w.WriteString("<pre><code>")
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		w.Write(util.EscapeHTML(line.Value(source)))
	}
	if block.HasClosure() {
		w.Write(util.EscapeHTML(block.ClosureLine.Value(source)))
	}
	w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	raw := n.(*ast.RawHTML)
	for i := range raw.Segments.Len() {
		piece := raw.Segments.At(i)
		w.Write(util.EscapeHTML(piece.Value(source)))
	}
	return ast.WalkSkipChildren, nil
}

// imageLink writes an image as a link around its description: a page that
// fetched it would tell the address's owner who reads it.
func imageLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	image := n.(*ast.Image)
	if !entering {
		w.WriteString(" (image)</a>")
		return ast.WalkContinue, nil
	}
	w.WriteString(`<a href="`)
	if dest := string(image.Destination); strings.HasPrefix(dest, "https://") || strings.HasPrefix(dest, "http://") {
		w.Write(util.EscapeHTML(util.URLEscape(image.Destination, true)))
	}
	w.WriteString(`">`)
	return ast.WalkContinue, nil
}
