package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deltafin/engine/checkpoint"
	"deltafin/engine/memory"
	"deltafin/session/paths"
)

// TestMemoryIsKept runs the program on a model whose experts take more than twice
// what the budget has for them, reads a prompt and writes an answer: the most that
// it ever had resident, files that it maps included, stays within the budget and
// 3 %.
func TestMemoryIsKept(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	dir := small(t, func(c *checkpoint.Config) {
		c.Experts, c.TopK, c.Latent, c.ExpertIntermediate = 128, 8, 256, 512
	})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for i := range 60 {
		fmt.Fprintf(&words, "%d ", i*7919%1000)
	}
	budget := int64(128 << 20)
	cmd := exec.CommandContext(t.Context(), exe, "ask", "--raw", "--seed", "1", "--model", dir, "--memory", strconv.FormatInt(budget, 10), "--context", "1000",
		"--stats", "-n", "60", words.String())
	cmd.Env = append(os.Environ(), programVar+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The system's own count at the end would include what this process held when
	// it started the other, so the peak is read while the answer comes.
	peak, piece := int64(0), make([]byte, 4)
	for {
		_, err := out.Read(piece)
		if err != nil {
			break
		}
		peak = max(peak, peakOf(t, cmd.Process.Pid))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	t.Logf("at most %s of %s were resident\n%s", memory.Text(peak), memory.Text(budget), errs.String())
	if peak > budget+budget*3/100 {
		t.Errorf("%d bytes were resident, %d are allowed", peak, budget)
	}
	if peak < budget/2 {
		t.Errorf("only %d bytes of %d were used: this proves nothing", peak, budget)
	}
}

// TestADiskWithoutRoomForHeat fills a real file system, in a mount namespace that
// ends with the program: the answer is given, the loss is named, and it is no
// failure.
func TestADiskWithoutRoomForHeat(t *testing.T) {
	home := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := `mkdir "$HOME/state" && mount -t tmpfs -o size=16k tmpfs "$HOME/state" && mkdir "$HOME/state/heat" || { echo skip; exit; }
head -c 16k /dev/zero > "$HOME/state/ballast" 2> /dev/null
exec "$0" "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, exe, "ask", "--greedy", "--effort", "low", "--cache", "2MiB", "hello")
	cmd.Env = append(os.Environ(), programVar+"=1", "HOME="+home, paths.HomeVar+"="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if cmd.ProcessState == nil || string(out) == "skip\n" {
		t.Skipf("no file system can be mounted here: %v %s", err, errs.String())
	}
	if err != nil || string(out) != helloAnswer+"\n" {
		t.Errorf("%v: %q", err, out)
	}
	if text := errs.String(); !strings.Contains(text, "no space left on device. Nothing else is lost.") {
		t.Errorf("standard error does not name the loss:\n%s", text)
	}
}

// peakOf is the most that a process had resident so far, 0 if it has ended.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	if !found {
		return 0
	}
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
