package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
)

// ConvertOptions say what is converted to where.
type ConvertOptions struct {
	// Model is the folder of the checkpoint; "" is the demonstration model.
	Model string
	// To is the folder for the file; "" is the model's own.
	To string
	// State is the folder where it is noted that the file is in To, as in
	// Options.DriveState.
	State string
	// Again converts although there is a whole file of this model already.
	Again bool
	// Threads is the number of workers; 0 stands for one per core. The file does not
	// depend on it.
	Threads int
	// Progress is called between two writes. It may be nil.
	Progress func(trunk.Progress)
}

// A SpaceError is a folder without room for the file, in bytes.
type SpaceError struct {
	Dir        string
	Free, Need int64
}

// Error names the folder and both sizes.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s has %d bytes free and the int8 trunk takes %d: name a folder on another disk with --to", e.Dir, e.Free, e.Need)
}

// ConvertTrunk writes a model's trunk with its large matrices rounded to int8, and
// opens the file. One that is there whole is taken as it is, since another would have
// the same bytes; wrote is false then. The file is there whole or not at all: whatever
// interrupts the work, one that was there before stays as it was. The error may be a
// *UsageError, a *SpaceError, the cause of ctx, or one of packages checkpoint and os.
func ConvertTrunk(ctx context.Context, o ConvertOptions) (f *trunk.Int8, wrote bool, err error) {
	if o.Model == "" && o.To == "" {
		return nil, false, &UsageError{Field: "to", Reason: "the demonstration model lies in the program: name a folder for its int8 trunk"}
	}
	ck, err := openCheckpoint(o.Model)
	if err != nil {
		return nil, false, err
	}
	defer ck.Close()
	if err := ck.Validate(ctx); err != nil {
		return nil, false, err
	}
	dir := o.To
	if dir == "" {
		dir = o.Model
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, false, err
	}
	path := filepath.Join(dir, trunk.Int8Name)
	if f, err = trunk.OpenInt8(path, ck); err != nil || o.Again {
		if err := o.write(ctx, ck, path); err != nil {
			return nil, false, err
		}
		wrote = true
		if f, err = trunk.OpenInt8(path, ck); err != nil {
			return nil, wrote, err
		}
	}
	if o.To != "" && o.State != "" {
		if err := writeWhole(trunkRecord(o.State, ck.Fingerprint()), []byte(path+"\n")); err != nil {
			return nil, wrote, fmt.Errorf("%s is written, but where it is could not be noted: %w", path, err)
		}
	}
	return f, wrote, nil
}

// write makes the file.
func (o *ConvertOptions) write(ctx context.Context, ck *checkpoint.Checkpoint, path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := sweepAside(path, time.Now()); err != nil {
		return err
	}
	plan, err := trunk.PlanInt8(ck)
	if err != nil {
		return err
	}
	// Where the system does not tell, writing will.
	if free, _, err := (&ssdio.Drive{Path: dir}).Space(); err == nil && free < plan.Bytes() {
		return &SpaceError{Dir: dir, Free: free, Need: plan.Bytes()}
	}
	workers := o.Threads
	if workers == 0 {
		workers = cores()
	}
	err = writeAside(path, func(w io.Writer) error {
		_, err := trunk.WriteInt8(ctx, ck, w, workers, o.Progress)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// VerifyTrunk reads the converted trunk of a model and compares every block with its
// checksum. It gives the file, and the blocks that are wrong: where, and the matrix.
func VerifyTrunk(ctx context.Context, model, state string, tell func(trunk.Progress)) (*trunk.Int8, []string, error) {
	ck, err := openCheckpoint(model)
	if err != nil {
		return nil, nil, err
	}
	defer ck.Close()
	f, err := OpenInt8Trunk(ck, state)
	if err != nil {
		return nil, nil, err
	}
	bad, err := f.Verify(ctx, tell)
	return f, bad, err
}
