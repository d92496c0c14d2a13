package session

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
)

// A faultFS stands between the database and the operating system. It can fail
// the n-th change of a file and all that follow until there is "room" again,
// and it knows what a power cut would leave: of every file what was synced,
// and of later writes a random choice.
type faultFS struct {
	base vfs.VFSFilename

	mu      sync.Mutex // guards below
	changes int        // writes, syncs and truncations so far
	failAt  int        // 0: never
	failure error
	watch   bool // keep what a power cut needs
	files   map[string]*fileImage
}

// A fileImage is a file as the drive holds it.
type fileImage struct {
	synced []byte
	exists bool // a sync has made it durable
	later  []lateWrite
}

type lateWrite struct {
	off  int64
	data []byte // nil: truncated at off
}

// newFaultFS registers a faultFS under a name for Options.vfs.
func newFaultFS(t testing.TB) (*faultFS, string) {
	f := &faultFS{base: newDiskFS(), files: map[string]*fileImage{}}
	name := fmt.Sprintf("fault-%s-%p", filepath.Base(t.Name()), f)
	vfs.Register(name, f)
	t.Cleanup(func() { vfs.Unregister(name) })
	return f, name
}

// arm lets the n-th change from now fail, and those after it.
func (f *faultFS) arm(n int, failure error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes, f.failAt, f.failure = 0, n, failure
}

// room ends the failures.
func (f *faultFS) room() { f.arm(0, nil) }

func (f *faultFS) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// change counts a change and returns the failure it is due. The mutex is held.
func (f *faultFS) change() error {
	f.changes++
	if f.failAt > 0 && f.changes >= f.failAt {
		return f.failure
	}
	return nil
}

func (f *faultFS) image(name string) *fileImage {
	if f.files[name] == nil {
		f.files[name] = &fileImage{}
	}
	return f.files[name]
}

// cutPower writes to a new folder what the drive would hold now.
func (f *faultFS) cutPower(t testing.TB, r *rand.Rand) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := t.TempDir()
	for name, img := range f.files {
		if !img.exists {
			continue
		}
		data := append([]byte(nil), img.synced...)
		for _, w := range img.later {
			if r.IntN(2) == 0 {
				continue // never reached the drive
			}
			if w.data == nil {
				data = data[:min(len(data), int(w.off))]
				continue
			}
			if need := int(w.off) + len(w.data); need > len(data) {
				data = append(data, make([]byte, need-len(data))...)
			}
			copy(data[w.off:], w.data)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (f *faultFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := f.base.Open(name, flags)
	return f.wrap(name, file), flags, err
}

func (f *faultFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := f.base.OpenFilename(name, flags)
	return f.wrap(name.String(), file), flags, err
}

func (f *faultFS) wrap(name string, file vfs.File) vfs.File {
	if file == nil {
		return nil
	}
	return &faultFile{file, f, name}
}

func (f *faultFS) Delete(name string, syncDir bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, name)
	return f.base.Delete(name, syncDir)
}

func (f *faultFS) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return f.base.Access(name, flags)
}

func (f *faultFS) FullPathname(name string) (string, error) { return f.base.FullPathname(name) }

type faultFile struct {
	vfs.File
	fs   *faultFS
	name string
}

func (f *faultFile) SharedMemory() vfs.SharedMemory {
	if shm, ok := f.File.(vfs.FileSharedMemory); ok {
		return shm.SharedMemory()
	}
	return nil
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.change(); err != nil {
		return 0, err
	}
	if img := f.fs.image(f.name); f.fs.watch {
		img.later = append(img.later, lateWrite{off, append([]byte(nil), p...)})
	}
	return f.File.WriteAt(p, off)
}

func (f *faultFile) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.change(); err != nil {
		return err
	}
	if img := f.fs.image(f.name); f.fs.watch {
		img.later = append(img.later, lateWrite{size, nil})
	}
	return f.File.Truncate(size)
}

// Sync only notes what would be durable: the real file is read, not synced,
// which keeps thousands of runs fast.
func (f *faultFile) Sync(vfs.SyncFlag) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.change(); err != nil {
		return err
	}
	if !f.fs.watch {
		return nil
	}
	data, err := os.ReadFile(f.name)
	if err != nil {
		return err
	}
	img := f.fs.image(f.name)
	img.synced, img.exists, img.later = data, true, nil
	return nil
}
