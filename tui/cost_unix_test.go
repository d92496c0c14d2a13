//go:build unix

package tui_test

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"deltafin/tui"
	"deltafin/tui/pane"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

// used is the processor time of this process.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// shown runs the screen in colour on a pseudo-terminal that is read and thrown away.
func shown(b *testing.B, f tui.Backend, cols, rows uint16) {
	b.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		b.Skipf("no pseudo-terminal here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	first, done := make(chan struct{}), make(chan error, 1)
	go func() { // ends with the terminal
		buf := make([]byte, 1<<16)
		for told := false; ; {
			n, err := master.Read(buf)
			if n > 1000 && !told {
				told = true
				close(first)
			}
			if err != nil {
				return
			}
		}
	}()
	th, err := theme.New(theme.Dark, theme.TrueColour, theme.Braille())
	if err != nil {
		b.Fatal(err)
	}
	o := tui.Options{Backend: f, Theme: th, In: slave, Out: slave, Environ: os.Getenv}
	go func() { done <- tui.Run(ctx, o) }()
	b.Cleanup(func() {
		cancel()
		ended(b, done)
		slave.Close()
		master.Close()
	})
	select {
	case <-first:
	case err := <-done:
		done <- err
		b.Fatalf("the screen ended: %v", err)
	case <-time.After(time.Minute):
		b.Fatal("no frame came within a minute")
	}
}

// A second of each benchmark below is a second of the clock; it reports how much of
// a core the screen took, the terminal's reading included.
//
//	go test ./tui -run '^$' -bench 'Idle|ASecond' -benchtime 10x

// BenchmarkIdle must stay under 1 % of a core.
func BenchmarkIdle(b *testing.B) {
	shown(b, tuitest.New("idle"), 120, 40)
	each(b, func(second <-chan time.Time) { <-second })
}

// BenchmarkTokenASecond must stay under 3 % of a core: a token a second, and five
// times as often, which is how often the program looks, another layer and other figures
// of the drives.
func BenchmarkTokenASecond(b *testing.B) {
	for _, size := range []struct {
		name       string
		cols, rows uint16
	}{{"80x24", 80, 24}, {"120x40", 120, 40}, {"200x60", 200, 60}} {
		b.Run(size.name, func(b *testing.B) {
			f := tuitest.New("decoding")
			all := tuitest.Tokens(tuitest.Thoughts, tuitest.Answer+tuitest.Answer)
			shown(b, f, size.cols, size.rows)
			n := len(all) / 2
			each(b, func(second <-chan time.Time) {
				fifth := time.NewTicker(time.Second / 5)
				defer fifth.Stop()
				n = min(n+1, len(all))
				f.Set(func(p *tui.Sample) {
					p.Tokens = all[:n]
					p.Times = append(p.Times[:len(p.Times):len(p.Times)], time.Second)
				})
				for i := 0; ; i++ {
					select {
					case <-second:
						return
					case <-fifth.C:
						f.Set(func(p *tui.Sample) {
							p.Layer = (p.Layer + 18) % 93
							drives := append([]pane.Drive(nil), p.Drives...)
							for j := range drives {
								drives[j].Now -= float64(i%3-1) * 1e8
								if i == 0 {
									drives[j].History = append(drives[j].History[1:len(drives[j].History):len(drives[j].History)], drives[j].Now)
								}
							}
							p.Drives = drives
						})
					}
				}
			})
		})
	}
}

// each calls work for every second of the clock, until whose end it lasts, and
// reports what all of it took of a core.
func each(b *testing.B, work func(second <-chan time.Time)) {
	b.Helper()
	runtime.GC()
	begun, before := time.Now(), used(b)
	for b.Loop() {
		work(time.After(time.Second))
	}
	b.ReportMetric(100*float64(used(b)-before)/float64(time.Since(begun)), "%core")
}
