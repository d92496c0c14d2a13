package ssdio

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// member is a drive in a set: its workers' channel, its files, its state.
type member struct {
	*Drive
	set           *Set
	index         int
	bit           uint64
	depth         int
	slice         int32 // blocks
	prefetchDepth int
	work          chan *flight // room for depth: a send never waits
	probe         chan struct{}
	count         driveCount

	filesMu sync.Mutex // guards below
	files   *fileSet

	// The set's lock guards the rest.
	flights  []*flight // in flight, oldest first
	bytes    int64     // in flight
	guesses  int       // prefetches in flight
	owed     [classes]int64
	service  service
	recent   recentHistogram
	failures int           // in a row
	answered time.Duration // when the last slice came back
	lost     bool
	silent   bool // lost because it answers nothing: an answer brings it back
	stalled  bool // silent for so short a time that work may wait for it
	lostAt   time.Duration
	backAt   time.Duration
	cause    error
	wait     time.Duration // before the next probe
}

// flight is one slice on its way: blocks [lo,hi) of a request, in one file.
type flight struct {
	req    *request
	on     *member
	hold   *holding
	lo, hi int32
	tries  int32
	avoid  uint64
	again  bool
	target uint8
	hedge  bool
	guess  bool          // started as a prefetch
	start  time.Duration // since the set was opened
	ahead  int64         // bytes in flight on the drive when it started, its own included
	hedged bool          // was asked for elsewhere too
	denied bool          // a hedge was refused, and counted

	// What the worker found.
	copied         int
	checked, noted int64
	badLo, badHi   int32 // blocks of a failed check
	err            error
}

// fileSet is the open files of a drive. When the drive comes back after a loss
// it gets a new one; the old one is closed by the last reader, because a
// descriptor that is closed during a read may be another file's when the read
// returns.
type fileSet struct {
	src  map[int32]Source // by file of the layout
	refs int              // readers, plus one while it is the current set
}

func newMember(s *Set, i int, d *Drive) *member {
	depth, slice := s.opt.Depth, s.opt.Slice
	rate, worth := float64(priorRate), time.Millisecond
	if p := d.Profile; p != nil {
		def(&depth, p.Best.Depth)
		def(&slice, max(p.Best.Size/BlockSize, 1)*BlockSize)
		rate, worth = p.Best.Rate, serviceHalf
	}
	def(&depth, defaultDepth)
	def(&slice, defaultSlice)
	m := &member{
		Drive: d, set: s, index: i, bit: 1 << i, depth: depth, slice: int32(slice / BlockSize),
		prefetchDepth: s.opt.PrefetchDepth, work: make(chan *flight, depth), probe: make(chan struct{}, 1),
		wait: s.opt.ProbeEvery,
	}
	def(&m.prefetchDepth, max(depth/2, 1))
	m.service.prior(rate, worth)
	return m
}

// estimate is what the cut may expect of the drive for work of a class.
func (m *member) estimate(now time.Duration, class Class) estimate {
	if m.lost {
		return estimate{}
	}
	rate := m.service.pending(now, m.bytes)
	queued := m.bytes
	for c := Class(0); c <= class; c++ {
		queued += m.owed[c]
	}
	return estimate{ready: float64(queued) / rate, rate: rate / BlockSize}
}

// openAll opens the drive's files of the layout and compares their sizes.
func (m *member) openAll() (*fileSet, error) {
	set := &fileSet{src: map[int32]Source{}, refs: 1}
	for i := range m.set.layout.files {
		f := &m.set.layout.files[i]
		if f.Drive != m.index {
			continue
		}
		src, err := m.FS.Open(f.Name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("drive %s: %w", m.Name, err), set.close())
		}
		set.src[int32(i)] = src
		if src.Size() < f.Size {
			err := fmt.Errorf("drive %s: %s has %d bytes, the layout needs %d: %w", m.Name, f.Name, src.Size(), f.Size, ErrShort)
			return nil, errors.Join(err, set.close())
		}
	}
	return set, nil
}

func (s *fileSet) close() error {
	var errs []error
	for _, src := range s.src {
		errs = append(errs, src.Close())
	}
	return errors.Join(errs...)
}

// openFiles opens the files for the first time and says so if one of them can
// only be read through the cache.
func (m *member) openFiles() error {
	set, err := m.openAll()
	if err != nil {
		return err
	}
	m.filesMu.Lock()
	m.files = set
	m.filesMu.Unlock()
	for i, src := range set.src {
		if !src.Direct() {
			m.set.opt.Listener.Buffered(BufferedInfo{Drive: m.Name, File: m.set.layout.files[i].Name})
			break
		}
	}
	return nil
}

// acquire gives the current files for one read; release gives them back.
func (m *member) acquire() *fileSet {
	m.filesMu.Lock()
	defer m.filesMu.Unlock()
	if m.files != nil {
		m.files.refs++
	}
	return m.files
}

func (m *member) release(set *fileSet) error {
	if set == nil {
		return nil
	}
	m.filesMu.Lock()
	set.refs--
	last := set.refs == 0
	m.filesMu.Unlock()
	if last {
		return set.close()
	}
	return nil
}

// replace makes set the current files and gives the old ones to be released.
func (m *member) replace(set *fileSet) (old *fileSet) {
	m.filesMu.Lock()
	defer m.filesMu.Unlock()
	old, m.files = m.files, set
	return old
}

// closeFiles drops the current files; a stuck read keeps its own open.
func (m *member) closeFiles() error { return m.release(m.replace(nil)) }
