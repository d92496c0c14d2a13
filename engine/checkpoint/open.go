package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Checkpoint is an open model. Its methods may be called from several
// goroutines, Close only when no Data is in use any more.
type Checkpoint struct {
	files      files
	cfg        *Config
	gen        *GenerationConfig
	x          *index
	configText []byte
	indexHash  []byte
	bare       bool // no shards were opened
	print      func() string
	closed     atomic.Bool
}

// An Option changes how a checkpoint is opened.
type Option func(*options)

type options struct{ indexOnly bool }

// IndexOnly reads config and index and touches no shard, which may then be
// absent: enough for Config, Account and Summary of a model that is not downloaded.
// Tensors give ErrNoWeights.
func IndexOnly() Option { return func(o *options) { o.indexOnly = true } }

// Open opens the checkpoint in a directory and maps the shards of its text
// model. Errors name the file and the byte or field; see the sentinels.
func Open(dir string, opts ...Option) (*Checkpoint, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("opening a model: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is a file, give the folder that holds %s", ErrNotCheckpoint, dir, ConfigFile)
	}
	return open(files{fsys: os.DirFS(dir), dir: dir}, opts)
}

// OpenFS opens a checkpoint that lies in an fs.FS. Shards of an InPlace file
// system are used where they are, those of any other are read into memory.
func OpenFS(fsys fs.FS, opts ...Option) (*Checkpoint, error) {
	return open(files{fsys: fsys}, opts)
}

func open(f files, opts []Option) (*Checkpoint, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	c := &Checkpoint{files: f, bare: o.indexOnly}
	if err := c.load(); err != nil {
		c.release() // the first error is the one to report
		return nil, err
	}
	c.print = sync.OnceValue(c.fingerprint)
	return c, nil
}

func (c *Checkpoint) load() error {
	if err := c.loadConfigs(); err != nil {
		return err
	}
	if err := c.openIndex(); err != nil {
		return err
	}
	if c.ExpertFormat() == MXFP4 {
		if err := c.cfg.groups(); err != nil {
			return fmt.Errorf("%s: %w", c.files.path(ConfigFile), err)
		}
	}
	if c.bare {
		return nil
	}
	return c.openShards()
}

func (c *Checkpoint) loadConfigs() (err error) {
	path := c.files.path(ConfigFile)
	c.configText, err = c.files.metadata(ConfigFile, maxMetadata)
	if notThere(err) {
		return fmt.Errorf("%w: %s is not there; give the folder that the model was downloaded to", ErrNotCheckpoint, path)
	}
	if err != nil {
		return err
	}
	if c.cfg, err = parseConfig(path, c.configText); err != nil {
		return err
	}
	text, err := c.files.metadata(GenerationFile, maxMetadata)
	if notThere(err) {
		c.gen = &GenerationConfig{}
		return nil
	}
	if err == nil {
		c.gen, err = parseGeneration(c.files.path(GenerationFile), text, c.cfg.Vocab)
	}
	return err
}

// openIndex reads the index. A checkpoint small enough for one file has none:
// then the names are those of that file's header.
func (c *Checkpoint) openIndex() error {
	text, release, err := c.files.shard(IndexFile)
	if notThere(err) {
		return c.openSingle()
	}
	if err != nil {
		return err
	}
	path := c.files.path(IndexFile)
	if len(text) > maxIndex {
		err = tooLong(path, maxIndex)
	} else {
		c.x, err = parseIndex(path, text, c.cfg)
		c.indexHash = digest(text)
	}
	// The table has copies of all that it keeps, so 50 MB can go again.
	return errors.Join(err, release())
}

func (c *Checkpoint) openSingle() error {
	path := c.files.path(SingleFile)
	data, release, err := c.files.shard(SingleFile)
	if notThere(err) {
		return fmt.Errorf("%w: neither %s nor %s is there; the download is not complete",
			ErrMissingShard, c.files.path(IndexFile), path)
	}
	if err != nil {
		return err
	}
	err = func() error {
		records, start, err := parseHeader(path, data)
		if err != nil {
			return err
		}
		if c.x, err = newIndex(path, c.cfg, int(start)); err != nil {
			return err
		}
		c.x.shards = []shard{{name: SingleFile}}
		s := &scanner{file: path, base: 8}
		for i := range records {
			if err := c.x.add(s, records[i].name, records[i].at, 0); err != nil {
				return err
			}
		}
		return nil
	}()
	return errors.Join(err, release())
}

// openShards maps every shard with text tensors and reads the headers, on all
// processors: those of the full model are about 90 MB of JSON. The error of the
// first shard in the index's order is returned, whichever failed first.
func (c *Checkpoint) openShards() error {
	errs := make([]error, len(c.x.shards))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(c.x.shards)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(errs) {
					return
				}
				if c.x.shards[i].text != "" {
					errs[i] = c.openShard(i)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Checkpoint) openShard(i int) error {
	sh := &c.x.shards[i]
	path := c.files.path(sh.name)
	data, release, err := c.files.shard(sh.name)
	if notThere(err) {
		return fmt.Errorf("%w: %s, needed for %s and %d other tensors", ErrMissingShard, path, sh.text, sh.names-1)
	}
	if err != nil {
		return err
	}
	sh.data, sh.release = data, release
	records, start, err := parseHeader(path, data)
	if err != nil {
		return err
	}
	sh.start = start
	return c.x.fill(i, path, records)
}

// Close unmaps the shards. All Data becomes invalid; methods that give tensors
// return ErrClosed afterwards. A second call does nothing.
func (c *Checkpoint) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.release()
}

func (c *Checkpoint) release() error {
	if c.x == nil {
		return nil
	}
	var errs []error
	for i := range c.x.shards {
		if sh := &c.x.shards[i]; sh.release != nil {
			errs = append(errs, sh.release())
			sh.release, sh.data = nil, nil
		}
	}
	return errors.Join(errs...)
}

// Config is the model's numbers. Do not change it.
func (c *Checkpoint) Config() *Config { return c.cfg }

// Generation is the content of generation_config.json, all nil if there is no
// such file. Do not change it.
func (c *Checkpoint) Generation() *GenerationConfig { return c.gen }

// FS gives the other files of the checkpoint, such as those of the tokenizer.
func (c *Checkpoint) FS() fs.FS { return c.files.fsys }

// Path is where the checkpoint lies: its directory, "" for a model in memory.
func (c *Checkpoint) Path() string { return c.files.dir }

// A Summary says what the index lists.
type Summary struct {
	Shards  int    // files
	Tensors int    // all names
	Ignored int    // of these, vision tower and projector
	Total   int64  // metadata.total_size, bytes, as the index claims; -1 if absent
	Mapped  int64  // bytes of the tensors of the opened shards, as their headers state
	Prefix  string // "language_model." or "": what stands before the text model's names
}

// Summary counts the index. If every shard is open, Mapped should equal Total.
func (c *Checkpoint) Summary() Summary {
	s := Summary{Shards: len(c.x.shards), Tensors: c.x.names, Ignored: c.x.ignored, Total: c.x.total, Prefix: c.x.prefix}
	for _, e := range c.x.entries {
		s.Mapped += e.length
	}
	for _, slots := range c.x.experts {
		for _, sl := range slots {
			s.Mapped += sl.length
		}
	}
	return s
}
