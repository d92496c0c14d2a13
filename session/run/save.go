package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"deltafin/session"
)

// due reports whether a snapshot is due because none was taken for long.
func (j *job) due() bool {
	now := j.r.opt.Now()
	if now.Before(j.last) {
		j.last = now // the clock was set back: begin to wait anew
	}
	return now.Sub(j.last) >= j.r.opt.Interval
}

// save keeps the sequence as a snapshot of a turn. A snapshot is a cache: what
// goes wrong is said and stops nothing.
func (j *job) save(ctx context.Context, turn session.ID) {
	n := j.seq.Len()
	if n == 0 || n == j.saved {
		return
	}
	j.last = j.r.opt.Now()
	if err := j.write(ctx, turn, n); err != nil {
		j.notice(ctx, turn, NoticeSnapshotUnsaved, fmt.Sprintf("no snapshot at token %d: %v; going on later will take longer", n, err))
		return
	}
	j.saved = n
}

func (j *job) write(ctx context.Context, turn session.ID, n int) error {
	r := j.r
	size := r.e.SnapshotBytes(n)
	if size > r.opt.Budget {
		return fmt.Errorf("it would take %d bytes, the budget for all of them is %d", size, r.opt.Budget)
	}
	if _, err := r.store.EvictSnapshots(ctx, r.opt.Budget-size, r.info.Fingerprint, r.info.Arithmetic, os.Remove); err != nil {
		return err
	}
	j.out.stage(Stage{StageSave, n, size})
	path := filepath.Join(r.opt.Snapshots, fileName(j.w.Thread(), n, r.info.Fingerprint))
	if err := r.e.SaveSnapshot(path, j.seq); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = r.store.AddSnapshot(ctx, session.SnapshotInfo{
		Path: path, Thread: j.w.Thread(), Turn: turn, Bytes: info.Size(), Cost: j.cost,
		Fingerprint: r.info.Fingerprint, KernelSet: r.info.Arithmetic,
	}, int32s(j.seq.Tokens()))
	if err != nil {
		// Without an entry nobody would find it, nor count its bytes.
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// keep leaves the sequence to the next run.
func (j *job) keep() {
	if j.taken {
		j.r.seq, j.r.cost = j.seq, j.cost
	}
}

// fileName names a snapshot by what it holds. The thread comes first and whole:
// Sweep reads from it whether someone may be writing the file.
func fileName(thread session.ID, tokens int, fingerprint string) string {
	if len(fingerprint) > 8 {
		fingerprint = fingerprint[:8]
	}
	return fmt.Sprintf("%s-%d-%s%s", thread, tokens, fingerprint, suffix)
}

// suffix ends the name of every snapshot.
const suffix = ".snap"
