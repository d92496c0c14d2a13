package place

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"deltafin/ssdio"
)

// JournalName is the file that says how far the placement on a drive is. It is
// there from the beginning of a placement until its manifest is published.
const JournalName = "deltafin-place.journal"

const (
	journalMagic   = "dfinjour"
	journalVersion = 1
)

// Kinds of records.
const (
	recordDone     = 1 // the next entry is on the device; payload: its sums
	recordVerified = 2 // the next pack was read back
	recordBack     = 3 // entries from this one on must be written again
)

// A journal is a file of records that are only ever appended. What a record says
// is on the device before the record is written, so cutting the file anywhere
// leaves a true statement.
type journal struct {
	path   string
	print  string
	drive  string
	plan   *Plan
	digest uint32 // of the packing it counts
	end    int64  // behind the last whole record
	records,
	torn int64 // bytes behind it that were no record
	state progressState
	file  diskFile // open while a job runs
}

// progressState is what a journal adds up to.
type progressState struct {
	done     int      // entries [0,done) are on the device
	verified int      // packs [0,verified) were read back
	sums     []uint32 // of the done entries' blocks, in their order
}

// digest is a checksum over everything that a plan puts on a drive.
func (k *packing) digest() uint32 {
	var b []byte
	for i := range k.entries {
		b = appendEntry(b, &k.entries[i])
	}
	for i := range k.files {
		b = appendText(le.AppendUint64(b, uint64(k.files[i].size)), k.files[i].name)
	}
	return ssdio.Sum(b)
}

// head is the journal's header: prefix, length, then fingerprint, drive, digest
// and plan, then the checksum of all that.
func (j *journal) head() ([]byte, error) {
	print, err := parsePrint(j.print)
	if err != nil {
		return nil, err
	}
	id, err := parseID(j.drive)
	if err != nil {
		return nil, err
	}
	body := append(append([]byte(nil), print[:]...), id[:]...)
	body = le.AppendUint32(body, j.digest)
	body = append(body, j.plan.encode()...)
	b := prefix(journalMagic, journalVersion)
	b = le.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	return le.AppendUint32(b, ssdio.Sum(b)), nil
}

// readJournal reads a journal as far as its records are whole. The error wraps
// fs.ErrNotExist if there is none.
func readJournal(path string) (*journal, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseJournal(path, data)
}

func parseJournal(path string, data []byte) (*journal, error) {
	if err := checkPrefix(path, data, journalMagic, journalVersion); err != nil {
		return nil, err
	}
	s := &scanner{data: data, at: 12}
	n := s.u32()
	if n > math.MaxInt32 || s.take(int(n)) == nil {
		return nil, fmt.Errorf("%s: header of %d bytes is not whole: %w", path, n, ErrDamaged)
	}
	end := s.at
	if sum := s.u32(); s.bad || sum != ssdio.Sum(data[:end]) {
		return nil, fmt.Errorf("%s: header has a wrong checksum: %w", path, ErrDamaged)
	}
	h := &scanner{data: data[:end], at: 16}
	print := h.print()
	id := h.id()
	j := &journal{path: path, print: print.String(), drive: id.String(), digest: h.u32()}
	j.plan = h.plan(print)
	if h.bad || h.at != end {
		return nil, fmt.Errorf("%s: header contradicts itself: %w", path, ErrDamaged)
	}
	j.records = int64(s.at)
	j.end = j.records
	j.replay(data)
	j.torn = int64(len(data)) - j.end
	return j, nil
}

// replay adds up records until the first that is not whole: that one was being
// written when the power went, and nothing can stand behind it.
func (j *journal) replay(data []byte) {
	var starts []int // of each done entry's sums
	for {
		s := &scanner{data: data, at: int(j.end)}
		kind, index, n := s.u32(), s.u32(), s.u32()
		s.u32() // reserved
		if n > math.MaxInt32 {
			return
		}
		payload := s.take(int(n))
		end := s.at
		if sum := s.u32(); s.bad || sum != ssdio.Sum(data[j.end:end]) {
			return
		}
		st := &j.state
		switch {
		case kind == recordDone && int(index) == st.done && n%sumSize == 0 && n > 0:
			starts = append(starts, len(st.sums))
			for i := 0; i < len(payload); i += sumSize {
				st.sums = append(st.sums, le.Uint32(payload[i:]))
			}
			st.done++
		case kind == recordVerified && int(index) == st.verified && n == 0:
			st.verified++
		case kind == recordBack && int(index) <= st.done && n == sumSize && int(le.Uint32(payload)) <= st.verified:
			if int(index) < st.done {
				st.sums = st.sums[:starts[index]]
				starts = starts[:index]
				st.done = int(index)
			}
			st.verified = int(le.Uint32(payload))
		default:
			return
		}
		j.end = int64(s.at)
	}
}

// fits says whether the journal counts this packing and not more of it than
// there is.
func (j *journal) fits(k *packing) error {
	d := j.digest
	if have := k.digest(); have != d {
		return fmt.Errorf("%s counts other files than the model has now (digest %08x, now %08x): %w; begin again with --replace", j.path, d, have, ErrDamaged)
	}
	blocks := k.blocks
	if j.state.done < len(k.entries) {
		blocks = k.sums0[j.state.done]
	}
	if j.state.done > len(k.entries) || j.state.verified > len(k.files) || len(j.state.sums) != blocks {
		return fmt.Errorf("%s counts %d objects of %d: %w; begin again with --replace", j.path, j.state.done, len(k.entries), ErrDamaged)
	}
	return nil
}

// create publishes an empty journal.
func (j *journal) create(d disk) error {
	head, err := j.head()
	if err != nil {
		return err
	}
	j.records, j.end, j.torn = int64(len(head)), int64(len(head)), 0
	return publish(d, j.path, head)
}

// open makes the journal ready to be appended to: a torn tail is cut.
func (j *journal) open(d disk) (err error) {
	if j.file, err = d.open(j.path); err != nil {
		return err
	}
	if j.torn > 0 {
		if err = j.file.Truncate(j.end); err == nil {
			err = j.file.Sync()
		}
		j.torn = 0
	}
	return err
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	f := j.file
	j.file = nil
	return f.Close()
}

// append writes records in one piece and waits until they are on the device.
func (j *journal) append(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	if _, err := j.file.WriteAt(records, j.end); err != nil {
		// What a failed write left behind would be a torn tail in front of
		// later records.
		return errors.Join(err, j.file.Truncate(j.end))
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.end += int64(len(records))
	return nil
}

func appendRecord(b []byte, kind uint32, index int, payload []byte) []byte {
	start := len(b)
	b = le.AppendUint32(b, kind)
	b = le.AppendUint32(b, uint32(index))
	b = le.AppendUint32(b, uint32(len(payload)))
	b = le.AppendUint32(b, 0)
	b = append(b, payload...)
	return le.AppendUint32(b, ssdio.Sum(b[start:]))
}

// absent says that a file is not there, which is no failure.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
