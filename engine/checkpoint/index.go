package checkpoint

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	maxMetadata = 16 << 20 // bytes of config.json and its like; the official one has 7,006
	maxIndex    = 1 << 30  // bytes of the index; the official one has about 50 MB
	maxShards   = 1 << 13
	// minNameBytes bounds from below what one expert tensor takes in an index
	// or header, so that a config cannot demand a table that the file could
	// never fill.
	minNameBytes = 48
)

// An entry is a tensor that is not part of a routed expert.
type entry struct {
	shard       int32
	dtype       DType // 0 until the shard's header was read
	dims        []int
	off, length int64
}

// A slot is one tensor of a routed expert, 32 bytes of it for each of the
// 494,592 of the full model.
type slot struct {
	off, length int64
	rows, cols  int32
	dtype       DType // 0 until the shard's header was read
	shard       uint16
	part        part
}

// slotsPerExpert: weight and scale of w1, w2, w3, in the order of the files.
const slotsPerExpert = 6

// A shard is one file of the index.
type shard struct {
	name    string
	names   int    // tensors that the index puts here
	text    string // one of its text tensors, as in the file; "" if there is none
	data    []byte // the whole file, once opened
	start   int64  // offset of the tensor data
	release func() error
}

// An index is the table from names to extents.
type index struct {
	file     string // path, for messages
	cfg      *Config
	shards   []shard
	byName   map[string]int // shard numbers
	entries  map[string]*entry
	experts  [][]slot // [layer][expert*6 + 2*(w-1) + (1 for a scale)], nil for layers without
	prefix   string   // wrapperPrefix or ""
	prefixed bool     // prefix is decided
	total    int64    // total_size as claimed, -1 if absent
	names    int
	ignored  int
}

func newIndex(file string, cfg *Config, size int) (*index, error) {
	x := &index{file: file, cfg: cfg, byName: map[string]int{}, entries: map[string]*entry{}, total: -1}
	moe := cfg.MoELayers()
	if wanted := int64(moe) * int64(cfg.Experts) * 3; wanted*minNameBytes > int64(size) {
		return nil, &FormatError{File: file, Offset: -1, Reason: fmt.Sprintf(
			"%d bytes cannot name the tensors of num_experts %d in %d layers that %s states", size, cfg.Experts, moe, ConfigFile)}
	}
	x.experts = make([][]slot, cfg.Layers)
	for l := range x.experts {
		if cfg.MoE(l) {
			x.experts[l] = make([]slot, cfg.Experts*slotsPerExpert)
		}
	}
	return x, nil
}

// parseIndex reads model.safetensors.index.json: {"metadata": {"total_size": n},
// "weight_map": {tensor: shard}}. No shard is touched.
func parseIndex(file string, data []byte, cfg *Config) (*index, error) {
	x, err := newIndex(file, cfg, len(data))
	if err != nil {
		return nil, err
	}
	s := &scanner{file: file, b: data}
	var seen [2]bool
	err = s.object(func(name []byte, at int) error {
		section := 0
		switch string(name) {
		case "metadata":
		case "weight_map":
			section = 1
		default:
			return s.skip()
		}
		if seen[section] {
			return s.errf(at, "%s stands twice", name)
		}
		seen[section] = true
		if section == 0 {
			return x.metadata(s)
		}
		return x.weightMap(s)
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && !seen[1] {
		err = &FormatError{File: file, Offset: -1, Reason: "weight_map is absent"}
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (x *index) metadata(s *scanner) error {
	return s.object(func(name []byte, at int) (err error) {
		if string(name) != "total_size" {
			return s.skip()
		}
		if x.total >= 0 {
			return s.errf(at, "total_size stands twice")
		}
		x.total, err = s.whole("total_size", []byte("metadata"))
		return err
	})
}

func (x *index) weightMap(s *scanner) error {
	last := -1 // neighbours usually lie in the same shard
	return s.object(func(name []byte, at int) error {
		// The name may be unescaped into a buffer of its own; both stay valid.
		s.peek()
		fileAt := s.i
		file, err := s.str()
		if err != nil {
			return err
		}
		if last < 0 || x.shards[last].name != string(file) {
			if last, err = x.shard(s, file, fileAt); err != nil {
				return err
			}
		}
		return x.add(s, name, at, last)
	})
}

// shard finds or adds a file. Only plain names are followed, so that an index
// cannot reach outside its folder.
func (x *index) shard(s *scanner, name []byte, at int) (int, error) {
	if i, ok := x.byName[string(name)]; ok {
		return i, nil
	}
	file := string(name)
	if !strings.HasSuffix(file, ".safetensors") || len(file) > 255 || strings.ContainsAny(file, "/\\:\x00") || file[0] == '.' {
		return 0, s.errf(at, "shard name %s must be a plain file name that ends in .safetensors", clip(name))
	}
	if len(x.shards) == maxShards {
		return 0, s.errf(at, "more than %d shards", maxShards)
	}
	x.shards = append(x.shards, shard{name: file})
	x.byName[file] = len(x.shards) - 1
	return len(x.shards) - 1, nil
}

// add enters a name for a shard; at is its place in s, for messages.
func (x *index) add(s *scanner, name []byte, at, in int) error {
	if len(name) == 0 || len(name) > maxName {
		return s.errf(at, "tensor name of %d bytes, allowed are 1 to %d", len(name), maxName)
	}
	x.names++
	sh := &x.shards[in]
	sh.names++
	if ignored(name) {
		x.ignored++
		return x.addEntry(s, name, at, in)
	}
	if sh.text == "" {
		sh.text = string(name)
	}
	short, err := x.strip(s, name, at)
	if err != nil {
		return err
	}
	if sl, p := x.slot(short); sl != nil {
		if sl.part != noPart {
			if sl.part != p {
				return s.errf(at, "tensor %s: the same matrix is also there as %s", clip(name), partNames[sl.part])
			}
			return s.errf(at, "tensor %s stands twice", clip(name))
		}
		sl.part, sl.shard = p, uint16(in)
		return nil
	}
	return x.addEntry(s, short, at, in)
}

func (x *index) addEntry(s *scanner, name []byte, at, in int) error {
	if _, twice := x.entries[string(name)]; twice {
		return s.errf(at, "tensor %s stands twice", clip(name))
	}
	x.entries[string(name)] = &entry{shard: int32(in)}
	return nil
}

// strip removes the wrapper prefix. The first text tensor decides whether the
// checkpoint has it.
func (x *index) strip(s *scanner, name []byte, at int) ([]byte, error) {
	short, has := name, false
	if len(name) >= len(wrapperPrefix) && string(name[:len(wrapperPrefix)]) == wrapperPrefix {
		short, has = name[len(wrapperPrefix):], true
	}
	if !x.prefixed {
		x.prefixed = true
		if has {
			x.prefix = wrapperPrefix
		}
	}
	if has != (x.prefix != "") {
		return nil, s.errf(at, "tensor %s: names with and without the prefix %q are mixed", clip(name), wrapperPrefix)
	}
	return short, nil
}

// slot finds the place of an expert's tensor, nil if name is not one that the
// config has. An expert beyond the config becomes an entry, which Validate refuses.
func (x *index) slot(short []byte) (*slot, part) {
	l, e, w, p, ok := parseExpert(short)
	if !ok || l >= len(x.experts) || x.experts[l] == nil || e >= x.cfg.Experts {
		return nil, noPart
	}
	i := e*slotsPerExpert + 2*(w-1)
	if p == scalePart {
		i++
	}
	return &x.experts[l][i], p
}

// fill enters what a shard's header says. Every name must be one that the index
// puts into this shard, and none may be left over. Different shards may be
// filled at the same time: the index gave each name to one of them.
func (x *index) fill(in int, path string, records []record) error {
	sh := &x.shards[in]
	s := &scanner{file: path, base: 8}
	prefix := []byte(x.prefix)
	for i := range records {
		r := &records[i]
		name := r.name
		if !ignored(name) {
			var has bool
			if name, has = bytes.CutPrefix(name, prefix); !has {
				return s.errf(r.at, "tensor %s is not in this shard according to %s", clip(r.name), x.file)
			}
		}
		if sl, p := x.slot(name); sl != nil {
			switch {
			case sl.part != p || int(sl.shard) != in:
				return s.errf(r.at, "tensor %s is not in this shard according to %s", clip(r.name), x.file)
			case sl.dtype != 0:
				return s.errf(r.at, "tensor %s stands twice", clip(r.name))
			case len(r.dims) != 2 || int(int32(r.dims[0])) != r.dims[0] || int(int32(r.dims[1])) != r.dims[1]:
				return s.errf(r.at, "tensor %s: shape %v, an expert's matrix must have two dimensions below 2^31", clip(r.name), r.dims)
			}
			sl.dtype, sl.rows, sl.cols = r.dtype, int32(r.dims[0]), int32(r.dims[1])
			sl.off, sl.length = sh.start+r.begin, r.end-r.begin
			continue
		}
		e := x.entries[string(name)]
		switch {
		case e == nil || int(e.shard) != in:
			return s.errf(r.at, "tensor %s is not in this shard according to %s", clip(r.name), x.file)
		case e.dtype != 0:
			return s.errf(r.at, "tensor %s stands twice", clip(r.name))
		}
		e.dtype, e.dims = r.dtype, r.dims
		e.off, e.length = sh.start+r.begin, r.end-r.begin
	}
	// Each record took a different name of this shard, so equal counts mean
	// that all were found.
	if len(records) == sh.names {
		return nil
	}
	return &TensorError{Name: x.unfilled(in), File: path, Err: ErrMissingTensor,
		Want: fmt.Sprintf("it here, where %s puts it", x.file)}
}

// unfilled names a tensor of a shard that its header lacks, the first by name.
func (x *index) unfilled(in int) string {
	first := ""
	for name, e := range x.entries {
		if int(e.shard) == in && e.dtype == 0 && (first == "" || name < first) {
			first = name
		}
	}
	if first != "" {
		if ignored([]byte(first)) {
			return first
		}
		return x.prefix + first
	}
	for l, slots := range x.experts {
		for i, sl := range slots {
			if sl.part != noPart && int(sl.shard) == in && sl.dtype == 0 {
				return x.prefix + expertName(l, i/slotsPerExpert, i%slotsPerExpert/2+1, sl.part)
			}
		}
	}
	return "unknown"
}
