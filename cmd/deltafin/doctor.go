package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/kernel"
	"deltafin/engine/memory"
	"deltafin/ssdio"
)

// newDoctor says what this machine can do.
func newDoctor(s streams) *cobra.Command {
	var model string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can do, and what is in the way",
		Long: `Looks at processor, memory, terminal and, with --model, at the model's folder and its
drive, and says of each what it means for Deltafin. It changes and measures nothing:
deltafin drives measures how fast drives are, deltafin bench kernels the arithmetic.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return doctor(c.Context(), s, modelDir(model), os.Getenv)
		},
	}
	addModelFlag(c, &model)
	return c
}

// doctor writes the report. What cannot be found out is said, not an error.
func doctor(ctx context.Context, s streams, model string, getenv func(string) string) error {
	tab := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("system", "%s/%s, %d cores for this program", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	levels := ""
	for _, l := range kernel.Levels() {
		levels += " " + l.Name
	}
	if k, err := kernel.Select(""); err != nil {
		line("arithmetic", "%v", err)
	} else {
		line("arithmetic", "%s in use; this machine has:%s", k.Name, levels)
	}
	if m, err := memory.Read(); err != nil {
		line("memory", "%v", err)
	} else {
		line("memory", "%s, of which Deltafin can take %s; %s", bytesText(m.Total), bytesText(m.Spare()), memoryWord(m.Spare()))
	}
	doctorModel(ctx, line, model)
	doctorTerminal(line, s, getenv)
	doctorFolders(ctx, line)
	return tab.Flush()
}

// memoryWord says what memory is good for: the part of Kimi K3 that every token
// uses takes 114 GB, and 58 GB as int8.
func memoryWord(spare int64) string {
	if spare < 124e9 {
		return "the full model's constant part (114 GB) does not fit: what is missing would be read for every token; as int8, which is not exact, it takes 58 GB"
	}
	return "holds the full model's constant part as it is, the rest caches experts"
}

type reportLine func(what, format string, args ...any)

func doctorModel(ctx context.Context, line reportLine, dir string) {
	if dir == "" {
		line("model", "none given; the demonstration model inside the program works everywhere")
		return
	}
	e, err := engine.Open(ctx, engine.Options{Model: dir})
	if err != nil {
		line("model", "%s", oneLine(err.Error()))
	} else {
		i := e.Info()
		line("model", "%s: %d layers, all files are there", i.Name, i.Config.Layers)
		if err := e.Close(); err != nil {
			line("model", "%s", oneLine(err.Error()))
		}
	}
	d, err := ssdio.OpenDrive(dir, &ssdio.DriveOptions{ReadOnly: true})
	if err != nil {
		line("drive", "%s", oneLine(err.Error()))
		return
	}
	speedWord := "not measured; deltafin drives " + dir + " does it"
	if state, err := stateFolder(); err == nil {
		if p, err := ssdio.LoadProfile(state, d, 0, time.Now()); err == nil {
			speedWord = speed(p.Best.Rate) + " measured " + p.Measured.Local().Format("2006-01-02")
		}
	}
	free := "free space unknown"
	if n, _, err := d.Space(); err == nil {
		free = bytesText(n) + " free"
	}
	line("drive", "%s, %s, %s", d.Name, free, speedWord)
}

func doctorTerminal(line reportLine, s streams, getenv func(string) string) {
	if !s.outTTY {
		line("terminal", "none: output goes to a file or a pipe, so it has no colours and no escapes")
		return
	}
	colours := "16 colours"
	switch term := getenv("TERM"); {
	case getenv("NO_COLOR") != "":
		colours = "no colours (NO_COLOR)"
	case term == "" || term == "dumb":
		colours = "no colours: TERM says it knows nothing"
	case strings.Contains(getenv("COLORTERM"), "truecolor"), strings.Contains(getenv("COLORTERM"), "24bit"):
		colours = "all colours"
	case strings.Contains(term, "256color"):
		colours = "256 colours"
	}
	locale := getenv("LC_ALL")
	for _, name := range []string{"LC_CTYPE", "LANG"} {
		if locale == "" {
			locale = getenv(name)
		}
	}
	glyphs := "plain ASCII: the locale is not UTF-8"
	if l := strings.ToLower(locale); strings.Contains(l, "utf-8") || strings.Contains(l, "utf8") || runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		glyphs = "lines, blocks and braille, if the font has them: ─│┌┐ ▁▂▃▄▅▆▇█ ⠁⠃⠇⡇⣇⣧⣷⣿ 冰 é"
	}
	line("terminal", "%s; %s", colours, glyphs)
}

func doctorFolders(ctx context.Context, line reportLine) {
	dir, err := controlDir()
	if err != nil {
		line("folders", "%v", err)
		return
	}
	r, err := readStatus(ctx)
	switch {
	case err != nil:
		line("running", "%s", oneLine(err.Error()))
	case r.Running:
		line("running", "pid %d holds the engine; deltafin status says what it does", r.Owner.PID)
	default:
		line("running", "nothing; the engine is free (%s)", dir)
	}
}
