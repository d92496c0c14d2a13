package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"deltafin/engine/checkpoint"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
)

// The forms of the trunk, as in Options.Trunk.
const (
	TrunkExact = "bf16" // as the model's files have it
	TrunkInt8  = "int8" // converted by ConvertTrunk; results differ from the model's
)

// Int8Label is what everything says that shows a model with such a trunk.
const Int8Label = "int8 trunk (not exact)"

// Int8Short is what remains of Int8Label where there is room for a word.
const Int8Short = "INEXACT"

// A converted trunk lies beside the model, or where a file in the folder of states
// says.

// trunkRecord is the file with the place of a model's converted trunk.
func trunkRecord(state, fingerprint string) string {
	return filepath.Join(state, "trunk-int8-"+fingerprint[:min(len(fingerprint), 32)]+".path")
}

// NoInt8Error: --trunk int8 was asked for, and the model was never converted.
type NoInt8Error struct {
	Model  string   // folder, "" for the demonstration model
	Looked []string // files that would have been taken
}

// Error names the command that makes the file.
func (e *NoInt8Error) Error() string {
	where := "nowhere, since the program keeps no state"
	if len(e.Looked) > 0 {
		where = strings.Join(e.Looked, " or ")
	}
	return fmt.Sprintf("the trunk of this model was not converted to int8 (looked for %s): run %s first, or use --trunk %s", where, e.command(), TrunkExact)
}

func (e *NoInt8Error) command() string {
	if e.Model == "" {
		return "deltafin trunk convert --to DIR"
	}
	return "deltafin trunk convert --model " + e.Model
}

// Unwrap makes it an fs.ErrNotExist.
func (e *NoInt8Error) Unwrap() error { return fs.ErrNotExist }

// OpenInt8Trunk finds and opens the converted trunk of an opened model: beside it, or
// where the record in the folder of states says. The error is a *NoInt8Error or one of
// trunk.OpenInt8.
func OpenInt8Trunk(ck *checkpoint.Checkpoint, state string) (*trunk.Int8, error) {
	missing := &NoInt8Error{Model: ck.Path()}
	try := func(path string) (*trunk.Int8, error) {
		f, err := trunk.OpenInt8(path, ck)
		if errors.Is(err, fs.ErrNotExist) {
			missing.Looked = append(missing.Looked, path)
			return nil, nil
		}
		return f, err
	}
	if ck.Path() != "" {
		if f, err := try(filepath.Join(ck.Path(), trunk.Int8Name)); f != nil || err != nil {
			return f, err
		}
	}
	if state == "" {
		return nil, missing
	}
	record := trunkRecord(state, ck.Fingerprint())
	switch text, err := os.ReadFile(record); {
	case errors.Is(err, fs.ErrNotExist):
		missing.Looked = append(missing.Looked, record)
		return nil, missing
	case err != nil:
		return nil, err
	default:
		if f, err := try(strings.TrimSpace(string(text))); f != nil || err != nil {
			return f, err
		}
		return nil, missing
	}
}

// openInt8 opens the converted trunk if the options ask for one. Without a plan and a
// size for it, it stays in memory whole.
func (o *Options) openInt8(ck *checkpoint.Checkpoint) (err error) {
	if o.Trunk != TrunkInt8 {
		return nil
	}
	if o.int8, err = OpenInt8Trunk(ck, o.DriveState); err != nil {
		return err
	}
	if o.Memory == 0 && o.ExpertCache > 0 && o.TrunkMemory == 0 {
		o.TrunkMemory = o.int8.Catalog().Plan(math.MaxInt64).Memory
	}
	return nil
}

// trunkCatalog lists the trunk in the form that the options ask for. A plan can be
// made before there is a file: its sizes follow from the model.
func (o *Options) trunkCatalog(ck *checkpoint.Checkpoint) (*trunk.Catalog, error) {
	switch {
	case o.Trunk != TrunkInt8:
		return trunk.NewCatalog(ck)
	case o.int8 != nil:
		return o.int8.Catalog(), nil
	}
	f, err := trunk.PlanInt8(ck)
	if err != nil {
		return nil, err
	}
	return f.Catalog(), nil
}

// int8Arithmetic is what an int8 trunk adds to Info.Arithmetic, before its group.
const int8Arithmetic = "+int8-trunk-"

// label sets what is said of the model, and the arithmetic, which sets its results
// apart from exact ones: snapshots and threads know each other by it. The name says it
// too, so that nothing which shows a model can leave it out.
func (i *Info) label(f *trunk.Int8) {
	if f == nil {
		return
	}
	i.Trunk = Int8Label
	i.Name += ", " + Int8Label
	i.Arithmetic += fmt.Sprintf("%s%d", int8Arithmetic, f.Group)
	notice := fmt.Sprintf("It runs with an %s: the weights that every token uses are rounded, by up to %.2f %% of their size (rms) in a matrix; answers differ from those of the exact model.", Int8Label, 100*f.Worst())
	i.Notice = strings.TrimSpace(i.Notice + " " + notice)
}

// TrunkOf is the form of the trunk that an Info.Arithmetic stands for, as in
// Options.Trunk: with it an answer goes on as it was begun.
func TrunkOf(arithmetic string) string {
	if strings.Contains(arithmetic, int8Arithmetic) {
		return TrunkInt8
	}
	return TrunkExact
}

// loadWhole reads a converted trunk into memory, for a model whose experts are mapped.
// The drive is used for that alone.
func loadWhole(ctx context.Context, o *Options) (_ *trunk.Store, err error) {
	cat := o.int8.Catalog()
	m := cat.Model()
	d, err := ssdio.OpenDrive(m.Dir, &ssdio.DriveOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("the int8 trunk: %w", err)
	}
	d = profiled(d, o.DriveState)
	var b ssdio.Builder
	if err := holdInPlace(&b, m, m.Dir, 0, "", o.int8.BlockSums()); err != nil {
		return nil, err
	}
	layout := b.Layout()
	set, err := ssdio.Open([]*ssdio.Drive{d}, layout, &ssdio.Options{Verify: ssdio.VerifyAll()})
	if err != nil {
		return nil, err
	}
	s, err := trunk.New(cat, set, layout, cat.Plan(math.MaxInt64))
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	readersCome()
	err = s.Load(ctx, o.Loading)
	readersGo()
	if err = errors.Join(err, set.Close()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
