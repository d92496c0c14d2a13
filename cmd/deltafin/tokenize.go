package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"deltafin/engine/chat"
	"deltafin/engine/checkpoint"
	"deltafin/engine/nano"
	"deltafin/engine/tokenizer"
)

type tokenizeFlags struct {
	dir                         string
	chat, decode, special, json bool
	noThink                     bool
	effort                      string
}

// newTokenize turns text into token ids and back. It reads the tokenizer alone, so
// it works before a model's weights are there.
func newTokenize(s streams) *cobra.Command {
	var f tokenizeFlags
	c := &cobra.Command{
		Use:   "tokenize [text or ids]",
		Short: "Turn text into token ids, or ids into text",
		Long: `Prints the token ids of the text given as arguments or on standard input. With
--chat the text is a user's message and the ids are those of the whole prompt; with
--decode ids come in and text goes out. Only config.json and the tokenizer files of
the model are needed.`,
		Example: `  deltafin tokenize "Hello, world!"
  deltafin tokenize --chat "Hello" --json
  deltafin tokenize --decode 18805 308 799`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, s, args)
		},
	}
	addModelFlag(c, &f.dir)
	c.Flags().BoolVar(&f.chat, "chat", false, "render the text as a chat prompt")
	c.Flags().BoolVar(&f.decode, "decode", false, "turn ids into text")
	c.Flags().BoolVar(&f.special, "special", false, "names of special tokens in the text become their ids")
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON object with ids and the text of each")
	c.Flags().BoolVar(&f.noThink, "no-think", false, "with --chat: a prompt without thinking")
	c.Flags().StringVar(&f.effort, "effort", string(chat.EffortMax), "with --chat: low, high or max")
	return c
}

func (f *tokenizeFlags) run(c *cobra.Command, s streams, args []string) error {
	for _, name := range []string{"no-think", "effort"} {
		if c.Flags().Changed(name) && !f.chat {
			return usage("--%s needs --chat", name)
		}
	}
	if err := exclusive(c, [][2]string{{"chat", "decode"}, {"chat", "special"}, {"decode", "special"}}); err != nil {
		return err
	}
	text := strings.Join(args, " ")
	if len(args) == 0 {
		data, err := io.ReadAll(s.in)
		if err != nil {
			return fmt.Errorf("reading standard input: %w", err)
		}
		text = string(data)
	}
	tok, err := openTokenizer(modelDir(f.dir))
	if err != nil {
		return err
	}
	if f.decode {
		return f.decodeIDs(s, tok, text)
	}
	var ids []int
	switch {
	case f.chat:
		ids, err = f.prompt(tok, text)
	case f.special:
		ids = tok.EncodeSpecial(text)
	default:
		ids = tok.Encode(text)
	}
	if err != nil {
		return err
	}
	return f.print(s, tok, ids)
}

// openTokenizer reads the tokenizer of a model folder, or of the demonstration
// model for "".
func openTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	var fsys fs.FS
	var config *checkpoint.Config
	if dir == "" {
		ck, err := nano.Open()
		if err != nil {
			return nil, err
		}
		fsys, config = ck.FS(), ck.Config()
	} else {
		fsys = os.DirFS(dir)
		data, err := fs.ReadFile(fsys, checkpoint.ConfigFile)
		if err != nil {
			return nil, fmt.Errorf("%s has no readable %s: %w", dir, checkpoint.ConfigFile, err)
		}
		if config, err = checkpoint.ParseConfig(data); err != nil {
			return nil, err
		}
	}
	return tokenizer.Load(fsys, config.Vocab)
}

func (f *tokenizeFlags) prompt(tok *tokenizer.Tokenizer, text string) ([]int, error) {
	effort, err := chat.ParseEffort(f.effort)
	if err != nil {
		return nil, usage("--effort: %v", err)
	}
	segs, err := chat.Render(&chat.Prompt{
		Messages: []chat.Message{{Role: chat.User, Content: text}},
		Thinking: !f.noThink, Effort: effort, Generate: true,
	})
	if err != nil {
		return nil, err
	}
	return chat.Encode(tok, segs)
}

func (f *tokenizeFlags) decodeIDs(s streams, tok *tokenizer.Tokenizer, list string) error {
	ids, err := parseIDs(list)
	if err != nil {
		return err
	}
	text, err := tok.Decode(ids)
	if err != nil {
		return usage("%v", err)
	}
	if f.json {
		return f.print(s, tok, ids)
	}
	if s.outTTY {
		text = printable(text)
	}
	_, err = fmt.Fprintln(s.out, text)
	return err
}

// print writes ids on one line, or as JSON with the bytes of each as text; bytes
// that are no text alone become U+FFFD.
func (f *tokenizeFlags) print(s streams, tok *tokenizer.Tokenizer, ids []int) error {
	if f.json {
		type piece struct {
			ID      int    `json:"id"`
			Text    string `json:"text"`
			Special bool   `json:"special,omitempty"`
		}
		out := struct {
			Count  int     `json:"count"`
			IDs    []int   `json:"ids"`
			Tokens []piece `json:"tokens"`
		}{len(ids), ids, make([]piece, len(ids))}
		if ids == nil {
			out.IDs = []int{}
		}
		for i, id := range ids {
			b, _ := tok.Bytes(id)
			out.Tokens[i] = piece{id, strings.ToValidUTF8(string(b), "\uFFFD"), tok.IsSpecial(id)}
		}
		return writeJSON(s.out, out)
	}
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	_, err := fmt.Fprintln(s.out, strings.Join(words, " "))
	return err
}
