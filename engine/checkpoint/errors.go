package checkpoint

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels for the decisions that a caller may take; test with errors.Is.
var (
	// ErrNotCheckpoint: the place has no config.json at all.
	ErrNotCheckpoint = errors.New("not a checkpoint")
	// ErrUnsupported: the config is well formed but describes a model that this
	// engine does not run.
	ErrUnsupported = errors.New("unsupported model")
	// ErrMissingTensor: the model needs a tensor that the checkpoint lacks.
	ErrMissingTensor = errors.New("tensor is missing")
	// ErrMissingShard: the index names a file that is not there.
	ErrMissingShard = errors.New("shard is missing")
	// ErrMismatch: a tensor is there with another dtype or shape than the
	// config demands.
	ErrMismatch = errors.New("tensor does not fit the config")
	// ErrNoWeights: the checkpoint was opened with IndexOnly.
	ErrNoWeights = errors.New("opened without its shards")
	// ErrClosed: the checkpoint was closed.
	ErrClosed = errors.New("checkpoint is closed")
)

// A FormatError is a file that does not hold what its format promises.
type FormatError struct {
	File   string // path as given to Open, or the name inside the fs.FS
	Offset int64  // bytes from the start of File, -1 if no place can be named
	Reason string
}

// Error names the file, the byte and the reason.
func (e *FormatError) Error() string {
	if e.Offset < 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Offset, e.Reason)
}

// A ConfigError is a field of config.json or generation_config.json that is
// missing, malformed, out of range, or says what the engine does not run.
type ConfigError struct {
	Field string // dotted path, e.g. "text_config.hidden_act"
	Got   string // the value as the file has it, "absent" if it is not there
	Want  string // what would be accepted, in words
	// Unsupported tells a valid value for another model from a broken one.
	Unsupported bool
}

// Error names the field and both values.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s is %s, this engine needs %s", e.Field, e.Got, e.Want)
}

// Is reports ErrUnsupported for values that belong to another model.
func (e *ConfigError) Is(target error) bool {
	return target == ErrUnsupported && e.Unsupported
}

// A TensorError is one tensor that is missing or not what was expected.
type TensorError struct {
	Name string // as in the files, with the wrapper prefix
	File string // the shard, or the index when no shard has the tensor
	Got  string // e.g. "BF16 [48]", empty when the tensor is missing
	Want string // e.g. "BF16 or F32 [64]"
	Err  error  // ErrMissingTensor, ErrMismatch, ErrClosed or ErrNoWeights
}

// Error names the tensor, the file and both values.
func (e *TensorError) Error() string {
	var s strings.Builder
	if e.File != "" {
		s.WriteString(e.File + ": ")
	}
	fmt.Fprintf(&s, "tensor %s: %v", clip(e.Name), e.Err)
	if e.Got != "" {
		s.WriteString(": it is " + e.Got)
	}
	if e.Want != "" {
		s.WriteString(", the model needs " + e.Want)
	}
	return s.String()
}

// Unwrap gives the sentinel.
func (e *TensorError) Unwrap() error { return e.Err }

// clip quotes a name from a file for a message: one line, bounded, printable.
func clip[T string | []byte](name T) string {
	const most = 120
	if len(name) > most {
		return fmt.Sprintf("%q...", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
