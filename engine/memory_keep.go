package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"deltafin/engine/expert"
	"deltafin/engine/memory"
)

// A Notice is what a person should know while the model runs.
type Notice struct {
	Text   string         // a sentence or two
	Memory *memory.Notice // what happened to the cache, nil if it is about something else
}

// heatEvery is how often heat is written: what a crash can lose of it.
const heatEvery = 10 * time.Minute

// A keeper keeps the cache's size right and its heat on disk, from Open to Close.
type keeper struct {
	e       *Engine
	stop    context.CancelFunc
	done    chan struct{}
	path    string // of the heat, "" to keep none
	told    bool   // that heat cannot be written
	written int64  // uses that the last heat knew
	st      expert.Stats
}

// keep starts a keeper if there is anything to keep.
func (e *Engine) keep() {
	if e.stream == nil {
		return
	}
	k := &keeper{e: e, done: make(chan struct{})}
	if e.opts.HeatDir != "" {
		k.path = filepath.Join(e.opts.HeatDir, e.info.Fingerprint[:min(len(e.info.Fingerprint), 32)]+".heat")
		k.load()
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	go k.run(ctx)
	e.keeper = k
}

// close ends the keeper and writes the heat a last time.
func (k *keeper) close() {
	if k == nil {
		return
	}
	k.stop()
	<-k.done
	k.save()
}

// run watches the memory and writes the heat now and then.
func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	watching := make(chan struct{})
	looks := time.NewTicker(memory.Every)
	defer looks.Stop()
	heats := time.NewTicker(heatEvery)
	defer heats.Stop()
	go func() {
		defer close(watching)
		if k.e.info.Memory != nil {
			memory.Watch(ctx, k.watch(looks.C))
		}
	}()
	for {
		select {
		case <-heats.C:
			k.save()
		case <-ctx.Done():
			<-watching
			return
		}
	}
}

// watch says what the watcher works with.
func (k *keeper) watch(tick <-chan time.Time) memory.Config {
	s := k.e.stream.store
	base, err := k.e.opts.machine.reading()
	size := k.e.info.Memory.Cache
	var st expert.Stats
	c := memory.Config{
		Governor: memory.Governor{Cache: size, Base: base}, Bounds: memory.Bounds{Least: s.Least(), Most: size},
		Tick: tick, Read: k.e.opts.machine.reading, Resize: s.Resize,
		Held: func() int64 {
			s.Stats(&st)
			return int64(st.Cached+st.Slots-st.Limit) * k.e.stream.cat.SlotBytes()
		},
		Notice: func(n memory.Notice) { k.tell(Notice{Text: n.String(), Memory: &n}) },
	}
	blind := false
	c.Failed = func(err error) {
		if !blind {
			blind = true
			k.tell(Notice{Text: fmt.Sprintf("The expert cache cannot follow the machine's memory: %v.", err)})
		}
	}
	if err != nil {
		c.Failed(err)
	}
	return c
}

func (k *keeper) tell(n Notice) {
	if f := k.e.opts.Notify; f != nil {
		f(n)
	}
}

// load starts the store with the heat of earlier runs. Without it the cache has to
// learn again, which is worth a word and nothing more.
func (k *keeper) load() {
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var heat expert.Heat
	if err == nil {
		heat, err = expert.ReadHeat(bytes.NewReader(data), k.e.info.Fingerprint)
	}
	if err == nil {
		err = k.e.stream.store.SetHeat(heat)
	}
	if err != nil {
		k.tell(Notice{Text: fmt.Sprintf("What experts were used most is not known from earlier runs: %v. The cache learns it again.", err)})
	}
}

// save writes the heat if anything was used since. A disk that does not take it
// costs the next run some reads, nothing else: it is told once.
func (k *keeper) save() {
	if k.path == "" {
		return
	}
	s := k.e.stream.store
	s.Stats(&k.st)
	uses := k.st.Total.Uses()
	if uses == k.written {
		return
	}
	err := writeWhole(k.path, expert.AppendHeat(nil, k.e.info.Fingerprint, s.Heat()))
	if err == nil {
		k.written, k.told = uses, false
		return
	}
	if !k.told {
		k.told = true
		k.tell(Notice{Text: fmt.Sprintf("What experts are used most could not be kept for the next run: %v. Nothing else is lost.", err)})
	}
}
