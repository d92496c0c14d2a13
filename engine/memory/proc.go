package memory

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// ReadProc takes a Reading from the files of a Linux system, from its root. Package
// os has them as os.DirFS("/"); tests have others. A missing /proc/meminfo is
// ErrUnknown; control groups and pressure may be missing.
func ReadProc(root fs.FS) (Reading, error) {
	r := Reading{How: "MemAvailable"}
	info, err := fields(root, "proc/meminfo")
	if err != nil {
		return r, fmt.Errorf("%w (%v)", ErrUnknown, err)
	}
	var ok bool
	if r.Total, ok = info["MemTotal"]; !ok {
		return r, fmt.Errorf("%w (/proc/meminfo has no MemTotal)", ErrUnknown)
	}
	if r.Available, ok = info["MemAvailable"]; !ok {
		return r, fmt.Errorf("%w (/proc/meminfo has no MemAvailable)", ErrUnknown)
	}
	if own, err := fields(root, "proc/self/status"); err == nil {
		r.Resident, r.Own = own["VmRSS"], own["RssAnon"]+own["RssShmem"]
	}
	for _, g := range groups(root) {
		r.confine(root, g)
	}
	r.Pressure = pressure(root, "proc/pressure/memory")
	return r, nil
}

// fields reads lines of the form "Name: 123 kB" as bytes.
func fields(root fs.FS, name string) (map[string]int64, error) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for line := range bytes.Lines(data) {
		key, rest, found := strings.Cut(string(line), ":")
		words := strings.Fields(rest)
		if !found || len(words) != 2 || words[1] != "kB" {
			continue
		}
		if n, err := strconv.ParseInt(words[0], 10, 64); err == nil && n >= 0 && n <= math.MaxInt64>>10 {
			out[key] = n << 10
		}
	}
	return out, nil
}

// A group is a folder of a control group with the names of its files.
type group struct {
	dir, limit, usage, idle string
}

// groups lists the control groups of this process, from its own up to the root, of
// both versions. Inside a container the path in /proc/self/cgroup may be that of the
// host; the folders that do not exist are passed over.
func groups(root fs.FS) []group {
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []group
	for line := range bytes.Lines(data) {
		part := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(part) != 3 {
			continue
		}
		g := group{dir: "sys/fs/cgroup", limit: "memory.max", usage: "memory.current", idle: "inactive_file"}
		switch {
		case part[0] == "0" && part[1] == "":
		case strings.Contains(","+part[1]+",", ",memory,"):
			g = group{dir: "sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", idle: "total_inactive_file"}
		default:
			continue
		}
		base := g.dir
		for p := path.Join("/", part[2]); ; p = path.Dir(p) {
			g.dir = path.Join(base, p)
			out = append(out, g)
			if p == "/" {
				break
			}
		}
	}
	return out
}

// confine lowers a reading to what a control group allows. Pages of files that the
// group has not used lately count as free, as they do in MemAvailable.
func (r *Reading) confine(root fs.FS, g group) {
	limit, ok := number(root, path.Join(g.dir, g.limit))
	if !ok || limit >= r.Total {
		return // "max", or the huge number that stands for it
	}
	used, ok := number(root, path.Join(g.dir, g.usage))
	if !ok {
		return
	}
	if data, err := fs.ReadFile(root, path.Join(g.dir, "memory.stat")); err == nil {
		for line := range bytes.Lines(data) {
			if w := strings.Fields(string(line)); len(w) == 2 && w[0] == g.idle {
				if n, err := strconv.ParseInt(w[1], 10, 64); err == nil {
					used -= n
				}
			}
		}
	}
	r.Total = limit
	if left := max(limit-max(used, 0), 0); left < r.Available {
		r.Available, r.How = left, "control group"
	}
}

func number(root fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n >= 0
}

// pressure reads avg10 of the line "some avg10=0.12 avg60=... total=...".
func pressure(root fs.FS, name string) float64 {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		w := strings.Fields(string(line))
		if len(w) < 2 || w[0] != "some" {
			continue
		}
		if text, ok := strings.CutPrefix(w[1], "avg10="); ok {
			if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v <= 100 {
				return v
			}
		}
	}
	return 0
}
