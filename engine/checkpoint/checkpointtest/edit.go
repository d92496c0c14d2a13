package checkpointtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"deltafin/engine/checkpoint"
)

// A Header is the JSON of a safetensors header: tensor name to Entry fields.
type Header map[string]map[string]any

// EditConfig rewrites config.json. The argument is the text_config, its parent
// is the outer object.
func EditConfig(dir string, edit func(text, outer map[string]any)) error {
	return editJSON(dir, checkpoint.ConfigFile, func(m map[string]any) {
		text, _ := m["text_config"].(map[string]any)
		edit(text, m)
	})
}

// EditIndex rewrites the weight map of the index: tensor name to shard.
func EditIndex(dir string, edit func(weights map[string]any)) error {
	return editJSON(dir, checkpoint.IndexFile, func(m map[string]any) {
		weights, _ := m["weight_map"].(map[string]any)
		edit(weights)
	})
}

func editJSON(dir, name string, edit func(map[string]any)) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	edit(m)
	return writeJSON(dir, name, m)
}

// EditHeader rewrites the header of a shard and leaves its data alone.
func EditHeader(dir, shard string, edit func(Header)) error {
	return editShard(dir, shard, func(header, data []byte) ([]byte, []byte, error) {
		var h Header
		if err := json.Unmarshal(header, &h); err != nil {
			return nil, nil, err
		}
		edit(h)
		header, err := json.Marshal(h)
		return header, data, err
	})
}

// EditData changes bytes of one tensor in place. name is as in the file.
func EditData(dir, shard, name string, edit func([]byte)) error {
	return editShard(dir, shard, func(header, data []byte) ([]byte, []byte, error) {
		var h map[string]struct {
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(header, &h); err != nil {
			return nil, nil, err
		}
		t, ok := h[name]
		if !ok {
			return nil, nil, fmt.Errorf("%s has no tensor %s", shard, name)
		}
		edit(data[t.Offsets[0]:t.Offsets[1]])
		return header, data, nil
	})
}

// DropTensor takes a tensor out of its shard and out of the index.
func DropTensor(dir, shard, name string) error {
	err := editShard(dir, shard, func(header, data []byte) ([]byte, []byte, error) {
		return without(header, data, name)
	})
	if err != nil {
		return err
	}
	return EditIndex(dir, func(weights map[string]any) { delete(weights, name) })
}

// without removes a tensor and moves the ones behind it forward.
func without(header, data []byte, name string) (h, d []byte, err error) {
	var all map[string]map[string]any
	if err := json.Unmarshal(header, &all); err != nil {
		return nil, nil, err
	}
	span := func(t map[string]any) (int, int) {
		o := t["data_offsets"].([]any)
		return int(o[0].(float64)), int(o[1].(float64))
	}
	gone, ok := all[name]
	if !ok {
		return nil, nil, fmt.Errorf("no tensor %s", name)
	}
	begin, end := span(gone)
	delete(all, name)
	for key, t := range all {
		if key == "__metadata__" {
			continue
		}
		if b, e := span(t); b >= end {
			t["data_offsets"] = []int{b - (end - begin), e - (end - begin)}
		}
	}
	h, err = json.Marshal(all)
	return h, append(data[:begin:begin], data[end:]...), err
}

func editShard(dir, shard string, edit func(header, data []byte) ([]byte, []byte, error)) error {
	path := filepath.Join(dir, shard)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(b)
	header, data, err := edit(b[8:8+n], b[8+n:])
	if err != nil {
		return err
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return os.WriteFile(path, append(append(out, header...), data...), 0o644)
}

// Truncate cuts a file to n bytes, or by -n bytes if n is negative.
func Truncate(dir, file string, n int64) error {
	path := filepath.Join(dir, file)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if n < 0 {
		n += info.Size()
	}
	return os.Truncate(path, n)
}

// Remove deletes a file.
func Remove(dir, file string) error { return os.Remove(filepath.Join(dir, file)) }
