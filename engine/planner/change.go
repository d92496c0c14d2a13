package planner

import (
	"fmt"

	"deltafin/engine/simulate"
)

// variant is a machine that is different in one way.
type variant struct {
	what string
	m    *simulate.Machine
}

// changesOf lists what could be bought or switched. A change that the machine
// forbids is not listed.
func changesOf(m *simulate.Machine) []variant {
	var out []variant
	add := func(what string, edit func(c *simulate.Machine)) {
		c := clone(m)
		edit(c)
		if _, err := simulate.Divide(c, simulate.K3(), 4096); err == nil && c.Check() == nil {
			out = append(out, variant{what, c})
		}
	}
	// A drive like the slowest: a fast one's slot is rarely free twice.
	slowest := m.Drives[0]
	for _, d := range m.Drives {
		if d.Rate < slowest.Rate {
			slowest = d
		}
	}
	add(fmt.Sprintf("one more drive of %.1f GB/s on a link of its own", slowest.Rate/1e9), func(c *simulate.Machine) {
		d := slowest
		d.Name, d.Hub = "one more", ""
		c.Drives = append(c.Drives, d)
	})
	add(fmt.Sprintf("%d GiB of memory in place of %d", 2*m.RAM>>30, m.RAM>>30), func(c *simulate.Machine) { c.RAM *= 2 })
	if m.Int8 {
		add("the trunk as bf16, as published", func(c *simulate.Machine) { c.Int8 = false })
	} else {
		add("the trunk as int8", func(c *simulate.Machine) { c.Int8 = true })
	}
	if len(m.Hubs) > 0 {
		add("hubs twice as fast", func(c *simulate.Machine) {
			for i := range c.Hubs {
				c.Hubs[i].Rate *= 2
			}
		})
	} else {
		add("drives and their links twice as fast", func(c *simulate.Machine) {
			for i := range c.Drives {
				c.Drives[i].Rate *= 2
			}
		})
	}
	add("memory twice as fast", func(c *simulate.Machine) { c.Bandwidth *= 2 })
	return out
}

// warnings says what about a machine holds it back more than its owner may think.
func warnings(m *simulate.Machine, runs *machineRuns) []string {
	out := []string{}
	for _, h := range m.Hubs {
		sum, n := 0.0, 0
		for _, d := range m.Drives {
			if d.Hub == h.Name {
				sum += d.Rate
				n++
			}
		}
		if sum > 1.05*h.Rate {
			out = append(out, fmt.Sprintf("hub %s lets %.1f GB/s through, the %d drives behind it could give %.1f: give one of them a port of its own", h.Name, h.Rate/1e9, n, sum/1e9))
		}
	}
	e := runs.decode[1]
	if share := e.Memory.Seconds() / e.Elapsed.Seconds(); share > 0.5 {
		out = append(out, fmt.Sprintf("memory bandwidth is the wall: %.0f %% of a token is reading weights from memory in the expected case (low to high case: %.0f to %.0f %%), which faster drives do not change",
			100*share, 100*memoryShare(runs).Low, 100*memoryShare(runs).High))
	}
	model := simulate.K3()
	cycle := float64(model.Experts.Bytes) * float64(model.Experts.TopK) * float64(model.Experts.Layers-model.Experts.Dense)
	if float64(e.Cache) < cycle {
		out = append(out, fmt.Sprintf("the cache of %.1f GB is below the cliff: one token uses experts of %.1f GB, so few are still there when they are needed again", float64(e.Cache)/1e9, cycle/1e9))
	}
	if e.Streamed > 0 {
		out = append(out, fmt.Sprintf("%.1f GB of the trunk do not fit into memory and are read from the drives for every token", float64(e.Streamed)/1e9))
	}
	if m.Int8 {
		out = append(out, "the trunk is held as int8, which deltafin trunk makes of the model: its weights are rounded, so texts are not those of the published model; with trunk = \"bf16\" they are")
	}
	if !m.Int8 && e.Cache < int64(2*cycle) {
		out = append(out, "the trunk as bf16 leaves little memory for experts: as int8, which deltafin trunk makes of it, it would take half")
	}
	return out
}

func memoryShare(r *machineRuns) Range {
	return each(&r.decode, func(x *simulate.Result) float64 { return x.Memory.Seconds() / x.Elapsed.Seconds() })
}
