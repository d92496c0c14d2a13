package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/checkpoint"
	"deltafin/engine/nano"
	"deltafin/engine/trunk"
)

// newInspect says what a checkpoint is, from its config and index alone, so that
// it works before 1.5 TB have been downloaded.
func newInspect(s streams) *cobra.Command {
	var dir string
	var asJSON bool
	var context int
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Say what a checkpoint is and what it needs",
		Long: `Prints the layers of a checkpoint by kind, its parameters and bytes by class, what
one token reads, what a conversation holds, and how memory would be divided.
config.json is enough; with the index and the weights beside it they are checked.`,
		Example: "  deltafin inspect --model /models/Kimi-K3",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if context < 1 {
				return usage("--context %d: at least 1 is needed", context)
			}
			r, err := inspect(modelDir(dir), context)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(s.out, r)
			}
			return r.print(s.out)
		},
	}
	addModelFlag(c, &dir)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().IntVar(&context, "context", 8192, "tokens of conversation to plan memory for")
	return c
}

// A report is what inspect found. Bytes are exact, parameters are weights.
type report struct {
	Model       string        `json:"model"`
	Notice      string        `json:"notice,omitempty"`
	Files       string        `json:"files"` // what of the checkpoint is there
	Fingerprint string        `json:"fingerprint,omitempty"`
	Layers      layerReport   `json:"layers"`
	Classes     []classReport `json:"classes"`
	Text        classReport   `json:"text"`
	Trunk       classReport   `json:"trunk"`
	Total       classReport   `json:"total"`
	PerToken    tokenReport   `json:"per_token"`
	State       stateReport   `json:"state"`
	Plans       []planReport  `json:"memory_plans"`
	// Int8 is the trunk that deltafin trunk convert wrote; NoInt8 says why there is
	// none, and is empty where the weights do not open.
	Int8   *int8Report `json:"int8_trunk,omitempty"`
	NoInt8 string      `json:"int8_trunk_absent,omitempty"`
}

type layerReport struct {
	Count int `json:"count"`
	KDA   int `json:"kda"`
	MLA   int `json:"mla"`
	Dense int `json:"dense"`
	MoE   int `json:"moe"`
	TopK  int `json:"experts_per_token"`
	Of    int `json:"experts_per_layer"`
}

type classReport struct {
	Name    string `json:"name"`
	Tensors int64  `json:"tensors"`
	Params  int64  `json:"parameters"`
	Bytes   int64  `json:"bytes"`
}

type tokenReport struct {
	Active      int64 `json:"active_parameters"`
	Experts     int64 `json:"experts"`
	ExpertBytes int64 `json:"bytes_per_expert"`
	Routed      int64 `json:"expert_bytes"`
	Trunk       int64 `json:"trunk_bytes"`
}

// stateReport is bytes as the engine holds them, in float32.
type stateReport struct {
	Fixed    int64 `json:"fixed_bytes"`
	PerToken int64 `json:"bytes_per_token"`
	Context  int   `json:"context"`
	AtLength int64 `json:"bytes_at_context"`
}

// planReport divides a memory between what must be resident and the cache.
type planReport struct {
	Memory  int64   `json:"memory_bytes"`
	Cache   int64   `json:"expert_cache_bytes"` // negative: so much is missing
	Experts int64   `json:"experts_cached"`
	Share   float64 `json:"share_of_experts"`
	// Streamed is what of the trunk is read for every token if it does not fit; 0 if
	// it does, or if even that is not possible.
	Streamed int64 `json:"trunk_bytes_streamed_per_token"`
}

func inspect(dir string, context int) (*report, error) {
	r := &report{Model: dir}
	var acc checkpoint.Account
	var c *checkpoint.Config
	switch ck, files, err := openToInspect(dir); {
	case err != nil:
		return nil, err
	case ck == nil: // config.json alone
		data, err := os.ReadFile(filepath.Join(dir, checkpoint.ConfigFile))
		if err != nil {
			return nil, err
		}
		if c, err = checkpoint.ParseConfig(data); err != nil {
			return nil, err
		}
		acc, r.Files = c.Account(), files
	default:
		defer ck.Close()
		c, acc, r.Files = ck.Config(), ck.Account(), files
		r.Fingerprint = ck.Fingerprint()
		if err := r.int8(ck); err != nil {
			return nil, err
		}
	}
	if dir == "" {
		r.Model, r.Notice = "k3-nano, the demonstration model", nano.Notice
	}
	r.fill(c, &acc, context)
	return r, nil
}

// int8 looks for a converted trunk. Where the weights are not there, nothing is said.
func (r *report) int8(ck *checkpoint.Checkpoint) error {
	plan, err := trunk.PlanInt8(ck)
	if errors.Is(err, checkpoint.ErrNoWeights) {
		return nil
	} else if err != nil {
		r.NoInt8 = "not possible: " + oneLine(err.Error())
		return nil
	}
	state, err := stateFolder()
	if err != nil {
		return err
	}
	f, err := engine.OpenInt8Trunk(ck, state)
	var missing *engine.NoInt8Error
	switch {
	case errors.As(err, &missing):
		r.NoInt8 = fmt.Sprintf("none; deltafin trunk convert would write %s", bytesText(plan.Bytes()))
	case err != nil:
		r.NoInt8 = "not usable: " + oneLine(err.Error())
	default:
		r.Int8 = int8ReportOf(f)
	}
	return nil
}

// openToInspect opens as much of a checkpoint as is there and says how much.
func openToInspect(dir string) (*checkpoint.Checkpoint, string, error) {
	if dir == "" {
		ck, err := nano.Open()
		return ck, "inside the program", err
	}
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ConfigFile)); err != nil {
		return nil, "", fmt.Errorf("%s holds no model: %w", dir, err)
	}
	if exists(dir, checkpoint.IndexFile) {
		ck, err := checkpoint.Open(dir, checkpoint.IndexOnly())
		if err != nil {
			return nil, "", err
		}
		sum := ck.Summary()
		what := fmt.Sprintf("%s tensors in %d shards by the index", humanize.Comma(int64(sum.Tensors)), sum.Shards)
		ck.Close()
		full, err := checkpoint.Open(dir)
		if err == nil {
			return full, what + ", all text shards there", nil
		}
		// Not all shards are there, or one is damaged: the index still tells.
		ck, ierr := checkpoint.Open(dir, checkpoint.IndexOnly())
		return ck, what + "; the weights do not open: " + oneLine(err.Error()), ierr
	}
	if exists(dir, checkpoint.SingleFile) {
		ck, err := checkpoint.Open(dir)
		return ck, "one file", err
	}
	return nil, "config.json alone; sizes follow from it", nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func (r *report) fill(c *checkpoint.Config, a *checkpoint.Account, context int) {
	moe := c.MoELayers()
	r.Layers = layerReport{Count: c.Layers, KDA: c.Layers - c.MLALayers(), MLA: c.MLALayers(), Dense: c.Layers - moe, MoE: moe, TopK: c.TopK, Of: c.Experts}
	class := func(name string, s checkpoint.Sum) classReport {
		return classReport{name, s.Tensors, s.Params, s.Bytes}
	}
	for k, s := range a.ByClass {
		if s.Tensors > 0 {
			r.Classes = append(r.Classes, class(checkpoint.Class(k).String(), s))
		}
	}
	r.Text, r.Trunk, r.Total = class("text model", a.Text()), class("trunk", a.Trunk()), class("total", a.Total())
	r.PerToken = tokenReport{a.ActiveParams(), a.ExpertsPerToken, a.ExpertBytes, a.ExpertsBytesPerToken(), a.TrunkPerToken()}
	r.State = stateReport{a.State.Fixed(), 4 * a.State.PerToken, context, a.State.Bytes(context)}
	for _, gb := range planSizes(a) {
		p := planReport{Memory: gb}
		p.Cache = p.Memory - a.Trunk().Bytes - r.State.AtLength
		if p.Cache > 0 && a.ExpertBytes > 0 {
			p.Experts = min(p.Cache/a.ExpertBytes, a.Experts)
			p.Share = float64(p.Experts) / float64(a.Experts)
		}
		if p.Cache < 0 {
			// Least cache: the experts of one layer of one token, and as many to be read.
			room := p.Memory - r.State.AtLength - 2*int64(c.TopK)*a.ExpertBytes
			if t, ok := streamedTrunk(a, room); ok {
				p.Streamed = t.PerToken
			}
		}
		r.Plans = append(r.Plans, p)
	}
}

// planSizes are the memories worth a row: for a model that fits into any computer
// its own size, else what computers have.
func planSizes(a *checkpoint.Account) []int64 {
	if total := a.Text().Bytes; total < 16e9 {
		return []int64{2 * total}
	}
	return []int64{64e9, 96e9, 128e9, 192e9, 256e9, 512e9}
}

// print writes the report as text, at most 80 columns wide.
func (r *report) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	size := func(n int64) string { return humanize.Bytes(uint64(n)) }
	row := func(name string, tensors, params, bytes int64) {
		cell := func(n int64) string {
			if n < 0 {
				return ""
			}
			return humanize.Comma(n)
		}
		line("%-24s %9s %21s %21s", name, cell(tensors), cell(params), cell(bytes))
	}
	line("%s", r.Model)
	if r.Notice != "" {
		line("%s", r.Notice)
	}
	line("%s", r.Files)
	l := r.Layers
	line("%d layers: %d KDA, %d MLA; %d dense, %d with %d of %d experts per token", l.Count, l.KDA, l.MLA, l.Dense, l.MoE, l.TopK, l.Of)
	line("\n%-24s %9s %21s %21s", "what", "tensors", "parameters", "bytes")
	for _, c := range append(r.Classes, r.Trunk, r.Text, r.Total) {
		row(c.Name, c.Tensors, c.Params, c.Bytes)
	}
	t := r.PerToken
	line("\none token")
	row("  active", -1, t.Active, t.Routed+t.Trunk)
	row("  its routed experts", t.Experts, -1, t.Routed)
	row("  one of them", 1, -1, t.ExpertBytes)
	row("  trunk", -1, -1, t.Trunk)
	st := r.State
	line("\none conversation")
	row("  fixed", -1, -1, st.Fixed)
	row("  each token", -1, -1, st.PerToken)
	row(fmt.Sprintf("  at %s tokens", humanize.Comma(int64(st.Context))), -1, -1, st.AtLength)
	line("\nmemory")
	for _, p := range r.Plans {
		if p.Streamed > 0 {
			line("  %-8s %s of the trunk do not fit: %s are read for every token", size(p.Memory), size(-p.Cache), size(p.Streamed))
			continue
		}
		if p.Cache < 0 {
			line("  %-8s the trunk and the conversation alone need %s more", size(p.Memory), size(-p.Cache))
			continue
		}
		line("  %-8s leaves %s for %s experts, %.1f %% of all", size(p.Memory), size(p.Cache), humanize.Comma(p.Experts), 100*p.Share)
	}
	if r.NoInt8 != "" {
		line("\n%s: %s", engine.Int8Label, r.NoInt8)
	}
	if r.Int8 != nil {
		line("\n%s: %s, for --trunk int8\n%s", r.Int8.Label, bytesText(r.Int8.Bytes), r.Int8.File)
		if err := r.Int8.print(w); err != nil {
			return err
		}
	}
	return w.Flush()
}
