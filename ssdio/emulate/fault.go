package emulate

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// A Kind is what goes wrong.
type Kind string

// The kinds of faults.
const (
	Error Kind = "error" // the read fails like a bad sector
	Short Kind = "short" // the read ends half way, as at the end of a file
	Flip  Kind = "flip"  // one bit of what was read is wrong
	Stall Kind = "stall" // the read answers late: after For, or never
	Gone  Kind = "gone"  // the device is not there: reads and opens fail
	Slow  Kind = "slow"  // the limit and the latency are By times worse
)

// A Fault says what goes wrong and when. In text it is the kind and conditions
// that all must hold, separated by slashes:
//
//	KIND[/after=N][/every=N][/count=N|always][/at=FROM-TO][/file=GLOB][/from=TIME][/for=TIME][/by=FACTOR]
//
// after skips the first N reads that meet the other conditions, every hits only
// one in N from then on, count ends the fault after N hits (default: no end;
// write always to say so). at restricts
// it to reads that touch the bytes [FROM,TO) of a file (for flip, one byte of
// these is changed), file to files whose name matches. from is the time since
// the drive was opened; for is how long the fault lasts, or, for stall, how long
// a read hangs. by is the factor of slow.
type Fault struct {
	Kind  Kind
	After int64
	Every int64    // of the reads that are left, the first of each so many; 0: all
	Count int64    // 0: no end
	At    [2]int64 // [from, to) in the file; both 0: anywhere
	File  string   // as in path.Match; "": any
	From  time.Duration
	For   time.Duration // 0: no end
	By    float64
}

func parseFault(text string) (Fault, error) {
	kind, rest, more := strings.Cut(text, "/")
	f := Fault{Kind: Kind(kind)}
	switch f.Kind {
	case Error, Short, Flip, Stall, Gone:
	case Slow:
		f.By = 2
	default:
		return f, fmt.Errorf("fault %q is none of error, short, flip, stall, gone and slow: %w", kind, ErrSpec)
	}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		key, value, _ := strings.Cut(part, "=")
		if err := f.set(key, value); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *Fault) set(key, value string) (err error) {
	number := func() (n int64) {
		n, err = strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			err = fmt.Errorf("%s=%q is no count: %w", key, value, ErrSpec)
		}
		return n
	}
	switch key {
	case "after":
		f.After = number()
	case "every":
		if f.Every = number(); err == nil && f.Every == 0 {
			err = fmt.Errorf("every=0 is no distance: %w", ErrSpec)
		}
	case "count":
		if value == "always" {
			f.Count = 0
			return nil
		}
		if f.Count = number(); err == nil && f.Count == 0 {
			err = fmt.Errorf("count=0 is no fault; write always for no end: %w", ErrSpec)
		}
	case "at":
		from, to, ok := strings.Cut(value, "-")
		if f.At[0], err = parseSize(from); err == nil && ok {
			f.At[1], err = parseSize(to)
		}
		if err == nil && f.At[0] >= f.At[1] {
			err = fmt.Errorf("at=%q is no range such as 4KiB-8KiB: %w", value, ErrSpec)
		}
	case "file":
		if _, bad := path.Match(value, ""); bad != nil || value == "" {
			err = fmt.Errorf("file=%q is no pattern: %w", value, ErrSpec)
		}
		f.File = value
	case "from":
		f.From, err = parseTime(value)
	case "for":
		f.For, err = parseTime(value)
	case "by":
		f.By, err = strconv.ParseFloat(value, 64)
		if err != nil || !(f.By > 0) || math.IsInf(f.By, 0) || f.Kind != Slow {
			err = fmt.Errorf("by=%q is no factor above 0 of a slow fault: %w", value, ErrSpec)
		}
	default:
		err = fmt.Errorf("fault condition %q is none of after, every, count, at, file, from, for and by: %w", key, ErrSpec)
	}
	return err
}

// String gives the fault in the form of the specification.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.After != 0 {
		fmt.Fprintf(&b, "/after=%d", f.After)
	}
	if f.Every != 0 {
		fmt.Fprintf(&b, "/every=%d", f.Every)
	}
	if f.Count != 0 {
		fmt.Fprintf(&b, "/count=%d", f.Count)
	}
	if f.At != [2]int64{} {
		fmt.Fprintf(&b, "/at=%d-%d", f.At[0], f.At[1])
	}
	if f.File != "" {
		b.WriteString("/file=" + f.File)
	}
	if f.From != 0 {
		b.WriteString("/from=" + f.From.String())
	}
	if f.For != 0 {
		b.WriteString("/for=" + f.For.String())
	}
	if f.Kind == Slow {
		b.WriteString("/by=" + strconv.FormatFloat(f.By, 'g', -1, 64))
	}
	return b.String()
}

// active says whether the fault's time has come. The time of a stall is the
// length of one hang, not of the fault.
func (f *Fault) active(at time.Duration) bool {
	return at >= f.From && (f.For == 0 || f.Kind == Stall || at < f.From+f.For)
}

// touches says whether a read of the named file meets the fault's place.
func (f *Fault) touches(name string, off int64, n int) bool {
	if f.File != "" {
		if ok, err := path.Match(f.File, name); !ok || err != nil {
			return false
		}
	}
	return f.At == [2]int64{} || (off < f.At[1] && off+int64(n) > f.At[0])
}
