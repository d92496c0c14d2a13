package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"deltafin/engine/checkpoint"
)

// Progress says how far a job is.
type Progress struct {
	Done, Total int64 // bytes of shards; those that were there count as done
	Found       int64 // bytes of shards that an earlier run had finished
	Shard       int   // shards that are complete, of Shards
	Shards      int
}

// MarkFile holds the options a folder was made with. It is written first, so that
// a folder that carries it is ours.
const MarkFile = "deltafin-synth.json"

// ErrNotOurs: the folder holds something that this package did not write.
var ErrNotOurs = errors.New("the folder holds other files")

// OtherError is a folder that was begun with other options.
type OtherError struct{ Have, Want Options }

// Error names both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("the folder was begun with %+v, now asked for is %+v: give the same, or another folder", e.Have, e.Want)
}

// chunk is how much a worker makes at a time; a multiple of all weights' sizes.
const chunk = 4 << 20

// Write makes the checkpoint in dir, or completes it. It is safe to interrupt:
// what ctx cancels, or a crash, is gone on with by the next call. progress, if not
// nil, is called often, from one goroutine at a time.
func (m *Model) Write(ctx context.Context, dir string, progress func(Progress)) error {
	if err := m.claim(dir); err != nil {
		return err
	}
	w := job{m: m, dir: dir, progress: progress, p: Progress{Total: m.Bytes(), Shards: len(m.shards)}}
	for i := range m.shards {
		if m.complete(dir, &m.shards[i]) {
			w.p.Found += m.shards[i].size
			w.p.Shard++
		}
	}
	w.p.Done = w.p.Found
	w.report(0)
	for i := range m.shards {
		s := &m.shards[i]
		if m.complete(dir, s) {
			continue
		}
		if err := w.shard(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		w.p.Shard++
		w.report(0)
	}
	return m.small(dir)
}

// claim makes the folder ours, or finds that it is.
func (m *Model) claim(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mark := filepath.Join(dir, MarkFile)
	data, err := os.ReadFile(mark)
	if err == nil {
		var have Options
		if err := json.Unmarshal(data, &have); err != nil {
			return fmt.Errorf("%s: %w", mark, err)
		}
		if have != m.opt {
			return &OtherError{Have: have, Want: m.opt}
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s: %w, such as %s: give an empty one", dir, ErrNotOurs, names[0].Name())
	}
	if data, err = json.Marshal(m.opt); err != nil {
		return err
	}
	return writeFile(mark, data)
}

// complete says whether a shard is there: its length and header are right, and it
// got its name only when it was whole.
func (m *Model) complete(dir string, s *shard) bool {
	f, err := os.Open(filepath.Join(dir, s.name))
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != s.size {
		return false
	}
	head := make([]byte, len(s.header))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, s.header)
}

// small writes what lies beside the shards; the config last, so that a folder
// that has one is complete.
func (m *Model) small(dir string) error {
	index, err := m.index()
	if err != nil {
		return err
	}
	ranks, names, err := Tokenizer(m.cfg.Vocab)
	if err != nil {
		return err
	}
	config, err := json.MarshalIndent(m.cfg.Tree(), "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{
		{checkpoint.IndexFile, index},
		{checkpoint.GenerationFile, fmt.Appendf(nil, "{\"eos_token_id\": %d}\n", m.cfg.EOS)},
		{"tiktoken.model", ranks},
		{"tokenizer_config.json", names},
		{checkpoint.ConfigFile, config},
	} {
		if err := writeFile(filepath.Join(dir, f.name), f.data); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a small file aside and renames it.
func writeFile(name string, data []byte) error {
	if err := os.WriteFile(name+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// job is one call of Write.
type job struct {
	m        *Model
	dir      string
	progress func(Progress)

	mu sync.Mutex // guards p, and calls progress
	p  Progress
}

func (w *job) report(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.p.Done += n
	if w.progress != nil {
		w.progress(w.p)
	}
}

// A span is a part of a tensor, and where it goes.
type span struct {
	t        *tensor
	from, to int64 // bytes of the tensor
	at       int64 // in the file
}

// shard makes one shard with all cores.
func (w *job) shard(ctx context.Context, s *shard) (err error) {
	name := filepath.Join(w.dir, s.name)
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(f.Close())) }()
	if err := f.Truncate(s.size); err != nil {
		return err
	}
	if _, err := f.WriteAt(s.header, 0); err != nil {
		return err
	}
	w.report(int64(len(s.header)))
	var spans []span
	at := int64(len(s.header))
	for i := range s.tensors {
		t := &s.tensors[i]
		for from, n := int64(0), t.Bytes(); from < n; from += chunk {
			spans = append(spans, span{t, from, min(from+chunk, n), at + from})
		}
		at += t.Bytes()
	}
	if err := w.fill(ctx, f, spans); err != nil {
		return err
	}
	// It must be on the disk before it has its name.
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// fill makes spans with as many workers as there are cores, until the first error.
func (w *job) fill(ctx context.Context, f io.WriterAt, spans []span) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Add(1)
		go func() {
			defer group.Done()
			buf := make([]byte, chunk)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(spans) {
					return
				}
				x := spans[i]
				p := buf[:x.to-x.from]
				x.t.fill(x.t.seed, p, x.from)
				if _, err := f.WriteAt(p, x.at); err != nil {
					stop(err)
					return
				}
				w.report(int64(len(p)))
			}
		}()
	}
	group.Wait()
	return context.Cause(ctx)
}
