package emulate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrSpec: a specification of an emulated drive cannot be understood.
var ErrSpec = errors.New("bad drive specification")

// A Spec says how a folder is to behave. The zero values mean: as it is.
type Spec struct {
	Path    string
	Name    string        // in reports
	Limit   int64         // bytes per second
	Latency time.Duration // added to every read
	Jitter  time.Duration // at most so much more, at random
	Hub     string        // name of a hub shared with other drives
	HubRate int64         // bytes per second of that hub; needed once per hub
	Cached  bool          // pretend that direct reads are refused
	Faults  []Fault
}

// ParseSpec reads
//
//	PATH[,limit=RATE][,latency=TIME][,jitter=TIME][,hub=NAME[:RATE]][,name=NAME][,cached][,fault=FAULT]...
//
// RATE is a number with B, KB, MB, GB, KiB, MiB or GiB and an optional "/s",
// TIME is as in 80us or 1.5s, and FAULT is described at [Fault]. A comma in a
// path or name is written twice. A plain path is a specification without any
// change.
func ParseSpec(text string) (Spec, error) {
	fields := split(text)
	s := Spec{Path: fields[0]}
	if s.Path == "" {
		return Spec{}, fmt.Errorf("%q names no folder: %w", text, ErrSpec)
	}
	for _, f := range fields[1:] {
		key, value, has := strings.Cut(f, "=")
		if key == "cached" && !has {
			s.Cached = true
			continue
		}
		if err := s.set(key, value); err != nil {
			return Spec{}, fmt.Errorf("%q in %q: %w", f, text, err)
		}
	}
	return s, nil
}

func (s *Spec) set(key, value string) (err error) {
	switch key {
	case "limit":
		s.Limit, err = parseRate(value)
	case "latency":
		s.Latency, err = parseTime(value)
	case "jitter":
		s.Jitter, err = parseTime(value)
	case "name":
		if s.Name = value; value == "" {
			err = fmt.Errorf("an empty name: %w", ErrSpec)
		}
	case "hub":
		name, rate, has := strings.Cut(value, ":")
		if s.Hub = name; name == "" {
			return fmt.Errorf("a hub needs a name: %w", ErrSpec)
		}
		s.HubRate = 0
		if has {
			s.HubRate, err = parseRate(rate)
		}
	case "fault":
		var f Fault
		if f, err = parseFault(value); err == nil {
			s.Faults = append(s.Faults, f)
		}
	default:
		err = fmt.Errorf("unknown; the options are limit, latency, jitter, hub, name, cached and fault: %w", ErrSpec)
	}
	return err
}

// Plain says that the specification changes nothing.
func (s *Spec) Plain() bool {
	return s.Limit == 0 && s.Latency == 0 && s.Jitter == 0 && s.Hub == "" && !s.Cached && len(s.Faults) == 0
}

// String gives the specification in the form that ParseSpec reads.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString(escape(s.Path))
	b.WriteString(s.options())
	return b.String()
}

// options is the part after the path, with its commas.
func (s *Spec) options() string {
	var b strings.Builder
	if s.Name != "" {
		b.WriteString(",name=" + escape(s.Name))
	}
	if s.Limit != 0 {
		fmt.Fprintf(&b, ",limit=%dB/s", s.Limit)
	}
	if s.Latency != 0 {
		b.WriteString(",latency=" + s.Latency.String())
	}
	if s.Jitter != 0 {
		b.WriteString(",jitter=" + s.Jitter.String())
	}
	if s.Hub != "" {
		b.WriteString(",hub=" + escape(s.Hub))
		if s.HubRate != 0 {
			fmt.Fprintf(&b, ":%dB/s", s.HubRate)
		}
	}
	if s.Cached {
		b.WriteString(",cached")
	}
	for i := range s.Faults {
		b.WriteString(",fault=" + escape(s.Faults[i].String()))
	}
	return b.String()
}

// split cuts at single commas; two in a row stand for one that is meant.
func split(text string) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != ',':
			b.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == ',':
			b.WriteByte(',')
			i++
		default:
			out = append(out, b.String())
			b.Reset()
		}
	}
	return append(out, b.String())
}

func escape(s string) string { return strings.ReplaceAll(s, ",", ",,") }

var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// parseSize reads a number of bytes with a unit; without one it is bytes.
func parseSize(text string) (int64, error) {
	number, factor := text, 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, factor = rest, u.bytes
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && factor == 1 {
		if n < 0 {
			return 0, fmt.Errorf("size %q is below zero: %w", text, ErrSpec)
		}
		return n, nil
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0) || v*factor >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is no size such as 4096, 500MB or 1.5GiB: %w", text, ErrSpec)
	}
	return int64(v * factor), nil
}

func parseRate(text string) (int64, error) {
	n, err := parseSize(strings.TrimSuffix(text, "/s"))
	if err == nil && n == 0 {
		err = fmt.Errorf("a rate of %q would never deliver: %w", text, ErrSpec)
	}
	return n, err
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no time such as 80us or 1.5s: %w", text, ErrSpec)
	}
	return d, nil
}
