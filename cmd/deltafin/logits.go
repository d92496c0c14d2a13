package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// newLogits writes the logits of every position: how other engines are compared
// with this one.
func newLogits(s streams) *cobra.Command {
	var m modelFlags
	var list, out string
	var step bool
	c := &cobra.Command{
		Use:   "logits --ids 1,2,3 --out FILE",
		Short: "Write the logits of every position to a file",
		Long: `Runs the model over the given token ids and writes the logits of all positions:
float32, little-endian, [positions][vocabulary], nothing else. The prompt is read
in one go, or with --step token by token; both give the same bits.`,
		Example: `  deltafin logits --ids 3843,1351,1355 --out all.f32
  deltafin logits --model /models/Kimi-K3 --ids 18805,308,799 --step --out steps.f32`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ids, err := parseIDs(list)
			if err != nil {
				return err
			}
			if out == "" {
				return usage("--out is missing: name the file for the logits")
			}
			e, err := m.open(c.Context(), c, s)
			if err != nil {
				return err
			}
			defer e.Close()
			rows := len(ids)
			if step {
				rows = 1
			}
			status, done := newStatus(s), 0
			vocab := e.Info().Config.Vocab
			err = writeFile(out, func(w *bufio.Writer) error {
				return e.Logits(c.Context(), ids, rows, func(logits []float32) error {
					done += len(logits) / vocab
					status.set("logits of %d of %d positions", done, len(ids))
					return writeFloats(w, logits)
				})
			})
			status.clear()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%d positions x %d logits, float32 little-endian, in %s\n", len(ids), vocab, out)
			return err
		},
	}
	m.add(c)
	c.Flags().StringVar(&list, "ids", "", "token ids, separated by commas or spaces")
	c.Flags().StringVar(&out, "out", "", "file to write")
	c.Flags().BoolVar(&step, "step", false, "one token at a time instead of one prefill")
	_ = c.MarkFlagFilename("out")
	return c
}

// parseIDs reads a list of token ids. Their range is the model's business.
func parseIDs(list string) ([]int, error) {
	words := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\r\n[]", r) })
	if len(words) == 0 {
		return nil, usage("no token ids were given: e.g. --ids 1,2,3")
	}
	ids := make([]int, len(words))
	for i, w := range words {
		id, err := strconv.Atoi(w)
		if err != nil {
			return nil, usage("token id %d is %q, not a whole number", i+1, w)
		}
		ids[i] = id
	}
	return ids, nil
}

func writeFloats(w *bufio.Writer, x []float32) error {
	var b [4]byte
	for _, v := range x {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file aside and renames it, so that no half of one is ever
// taken for the whole.
func writeFile(path string, fill func(*bufio.Writer) error) (err error) {
	tmp := path + ".part"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(tmp)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
