package synth

import (
	"encoding/json"
	"fmt"

	"deltafin/engine/checkpoint"
)

// prefix of every tensor of the text model (spec 2.2).
const prefix = "language_model."

func expertName(e, w int) string {
	return fmt.Sprintf("block_sparse_moe.experts.%d.w%d.weight", e, w)
}

// A Model is a checkpoint to be made.
type Model struct {
	opt    Options
	cfg    *checkpoint.Config
	scales [3]filler
	shards []shard
}

// A shard is one file: a layer, or what lies outside the layers.
type shard struct {
	name    string
	header  []byte // with its length in front
	tensors []tensor
	size    int64 // header included
}

// New checks the options and lays out the files. Nothing is written.
func New(o Options) (*Model, error) {
	m := &Model{opt: o}
	var err error
	if m.cfg, err = m.opt.config(); err != nil {
		return nil, err
	}
	c := m.cfg
	wide := scales(c.Latent, 1)
	m.scales = [3]filler{wide, scales(c.ExpertIntermediate, 1), wide}
	lists := make([][]tensor, c.Layers+1)
	c.Each(func(s checkpoint.Spec) bool {
		in := s.Layer
		if in < 0 {
			in = c.Layers
		}
		lists[in] = append(lists[in], m.trunk(s))
		return true
	})
	for l := range c.Layers {
		if !c.MoE(l) {
			continue
		}
		for e := range c.Experts {
			lists[l] = append(lists[l], m.expert(l, e)...)
		}
	}
	for i, list := range lists {
		entries := make([]checkpoint.Entry, len(list))
		for k := range list {
			entries[k] = list[k].Entry
		}
		s := shard{name: fmt.Sprintf("model-%05d-of-%06d.safetensors", i+1, len(lists)), tensors: list, header: checkpoint.FormatHeader(entries)}
		s.size = int64(len(s.header))
		for k := range list {
			s.size += list[k].Bytes()
		}
		m.shards = append(m.shards, s)
	}
	return m, nil
}

// Config is the model's shape.
func (m *Model) Config() *checkpoint.Config { return m.cfg }

// Bytes is the size of all shards.
func (m *Model) Bytes() int64 {
	n := int64(0)
	for i := range m.shards {
		n += m.shards[i].size
	}
	return n
}

// index is the text of the index file.
func (m *Model) index() ([]byte, error) {
	weights, total := map[string]string{}, int64(0)
	for i := range m.shards {
		for k := range m.shards[i].tensors {
			t := &m.shards[i].tensors[k]
			weights[t.Name] = m.shards[i].name
			total += t.Bytes()
		}
	}
	return json.MarshalIndent(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": weights}, "", "  ")
}
