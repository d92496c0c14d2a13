package simulate

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/dustin/go-humanize"
)

// ErrMachine: a description of a machine makes no sense.
var ErrMachine = errors.New("bad machine")

// A Machine is what a run needs to know of a computer. Sizes are bytes, rates
// bytes per second.
type Machine struct {
	Name      string  `json:"name"`
	RAM       int64   `json:"ram_bytes"`
	Reserve   int64   `json:"reserve_bytes"` // of it, for the system and other programs
	Bandwidth float64 `json:"ram_bytes_per_second"`
	Gflops    float64 `json:"gflops"` // sustained over the engine's kernels, many rows
	Int8      bool    `json:"int8_trunk"`
	Overlap   float64 `json:"overlap"` // how much wider than its share a drive's range of each expert is
	Drives    []Drive `json:"drives"`
	Hubs      []Hub   `json:"hubs,omitempty"`
	Notes     string  `json:"notes,omitempty"` // where the figures are from
}

// A Drive is one drive of a machine.
type Drive struct {
	Name    string  `json:"name"`
	Rate    float64 `json:"bytes_per_second"`
	Latency float64 `json:"latency_seconds"`
	Hub     string  `json:"hub,omitempty"`
}

// A Hub is a link that drives share.
type Hub struct {
	Name string  `json:"name"`
	Rate float64 `json:"bytes_per_second"`
}

// file is a Machine as people write it.
type file struct {
	Name         string  `toml:"name"`
	Notes        string  `toml:"notes"`
	RAM          string  `toml:"ram"`
	Reserve      string  `toml:"reserve"`
	RAMBandwidth string  `toml:"ram_bandwidth"`
	Gflops       float64 `toml:"gflops"`
	Trunk        string  `toml:"trunk"`
	Overlap      float64 `toml:"overlap"`
	Drive        []struct {
		Name      string  `toml:"name"`
		Rate      string  `toml:"rate"`
		LatencyUS float64 `toml:"latency_us"`
		Hub       string  `toml:"hub"`
	} `toml:"drive"`
	Hub []struct {
		Name string `toml:"name"`
		Rate string `toml:"rate"`
	} `toml:"hub"`
}

// ReadMachine reads a description in TOML: name, notes, ram, reserve,
// ram_bandwidth, gflops, trunk ("int8" or "bf16"), overlap, tables [[drive]] with
// name, rate, latency_us and hub, and [[hub]] with name and rate. Sizes are written
// as "128GiB", rates as "7.1GB/s". Errors wrap ErrMachine and name the key.
func ReadMachine(r io.Reader) (*Machine, error) {
	f := file{Reserve: "8GiB", Trunk: "int8", Overlap: 0.2}
	meta, err := toml.NewDecoder(r).Decode(&f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMachine, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s is no key of a machine: %w", unknown[0], ErrMachine)
	}
	p := parser{}
	m := &Machine{
		Name: f.Name, Notes: f.Notes, Gflops: f.Gflops, Overlap: f.Overlap, Int8: f.Trunk == "int8",
		RAM: int64(p.size("ram", f.RAM, "")), Reserve: int64(p.size("reserve", f.Reserve, "")),
		Bandwidth: p.size("ram_bandwidth", f.RAMBandwidth, "/s"),
	}
	for i, d := range f.Drive {
		if d.Name == "" {
			d.Name = fmt.Sprintf("drive %d", i+1)
		}
		m.Drives = append(m.Drives, Drive{d.Name, p.size("rate of "+d.Name, d.Rate, "/s"), d.LatencyUS / 1e6, d.Hub})
	}
	for _, h := range f.Hub {
		m.Hubs = append(m.Hubs, Hub{h.Name, p.size("rate of hub "+h.Name, h.Rate, "/s")})
	}
	if p.err == nil && f.Trunk != "int8" && f.Trunk != "bf16" {
		p.err = fmt.Errorf("trunk is %q, not int8 or bf16: %w", f.Trunk, ErrMachine)
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, m.Check()
}

// parser reads sizes and keeps the first error.
type parser struct{ err error }

func (p *parser) size(key, text, unit string) float64 {
	number, ok := strings.CutSuffix(text, unit)
	n, err := humanize.ParseBytes(strings.TrimSpace(number))
	if p.err == nil && (err != nil || !ok) {
		p.err = fmt.Errorf("%s is %q, write it as 12GB%s: %w", key, text, unit, ErrMachine)
	}
	return float64(n)
}

// Bounds of what exists, and of what could within some years.
const (
	leastRAM, mostRAM   = 1 << 30, 64 << 40
	leastRate, mostRate = 1e5, 200e9
	leastBandwidth      = 1e9
	mostBandwidth       = 20e12
	leastGflops         = 1
	mostGflops          = 5e6
	maxDrives           = 32
)

// Check says what about a machine cannot be.
func (m *Machine) Check() error {
	bad := func(format string, a ...any) error { return fmt.Errorf(format+": %w", append(a, ErrMachine)...) }
	within := func(x, lo, hi float64) bool { return x >= lo && x <= hi } // false for NaN
	switch {
	case !within(float64(m.RAM), leastRAM, mostRAM):
		return bad("ram is %d bytes, between 1 GiB and 64 TiB can be", m.RAM)
	case m.Reserve < 0 || m.Reserve >= m.RAM:
		return bad("reserve is %d bytes of %d of ram", m.Reserve, m.RAM)
	case !within(m.Bandwidth, leastBandwidth, mostBandwidth):
		return bad("ram_bandwidth is %g B/s, between 1 GB/s and 20 TB/s can be", m.Bandwidth)
	case !within(m.Gflops, leastGflops, mostGflops):
		return bad("gflops is %g, between %d and %g can be", m.Gflops, leastGflops, float64(mostGflops))
	case !within(m.Overlap, 0, math.MaxInt16):
		return bad("overlap is %g, 0 or more can be", m.Overlap)
	case len(m.Drives) == 0 || len(m.Drives) > maxDrives:
		return bad("%d drives, between 1 and %d can be: the experts must come from somewhere", len(m.Drives), maxDrives)
	}
	hubs := map[string]bool{}
	for _, h := range m.Hubs {
		if h.Name == "" || hubs[h.Name] {
			return bad("a hub is called %q, each needs a name of its own", h.Name)
		}
		if hubs[h.Name] = true; !within(h.Rate, leastRate, mostRate) {
			return bad("hub %s has a rate of %g B/s, between 0.1 MB/s and 200 GB/s can be", h.Name, h.Rate)
		}
	}
	for _, d := range m.Drives {
		switch {
		case !within(d.Rate, leastRate, mostRate):
			return bad("drive %s has a rate of %g B/s, between 0.1 MB/s and 200 GB/s can be", d.Name, d.Rate)
		case !within(d.Latency, 0, 1):
			return bad("drive %s has a latency of %g s, between 0 and 1 can be", d.Name, d.Latency)
		case d.Hub != "" && !hubs[d.Hub]:
			return bad("drive %s is behind hub %s, which is not described", d.Name, d.Hub)
		}
	}
	return nil
}

// Rate is what all drives give together, with what their hubs let through.
func (m *Machine) Rate() float64 {
	sum := 0.0
	for _, x := range m.shares() {
		sum += x
	}
	return sum
}

// shares is what each drive gives while all are busy: drives behind a hub share
// what it lets through in the proportion of their rates.
func (m *Machine) shares() []float64 {
	out := make([]float64, len(m.Drives))
	behind := map[string]float64{}
	for i, d := range m.Drives {
		out[i] = d.Rate
		behind[d.Hub] += d.Rate
	}
	for _, h := range m.Hubs {
		for i, d := range m.Drives {
			if d.Hub == h.Name {
				out[i] *= min(1, h.Rate/behind[h.Name])
			}
		}
	}
	return out
}

//go:embed machines/*.toml
var examples embed.FS

// Examples are the names of the machines that come with the program.
func Examples() []string { return []string{"m5max", "pc192", "laptop64"} }

// Example is a machine that comes with the program.
func Example(name string) (*Machine, error) {
	f, err := examples.Open("machines/" + name + ".toml")
	if err != nil {
		return nil, fmt.Errorf("no machine is called %s, there are %s: %w", name, strings.Join(Examples(), ", "), ErrMachine)
	}
	defer f.Close()
	return ReadMachine(f)
}
