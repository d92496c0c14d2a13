package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"deltafin/ssdio"
)

// TestTemperatures: found for a disk and its partition where the kernel puts them,
// absent without a sensor, and asked for seldom.
func TestTemperatures(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, to), path); err != nil {
			t.Fatal(err)
		}
	}
	const sensor = "devices/pci/nvme0/hwmon3/temp1_input"
	write(sensor, "41850\n")
	link("devices/pci/nvme0/nvme0n1/device", "devices/pci/nvme0")
	write("devices/pci/nvme0/nvme0n1/nvme0n1p2/partition", "2\n")
	link("class/block/nvme0n1", "devices/pci/nvme0/nvme0n1")
	link("class/block/nvme0n1p2", "devices/pci/nvme0/nvme0n1/nvme0n1p2")
	write("devices/ata/hwmon/hwmon0/temp1_input", "33000\n")
	link("devices/ata/block/sda/device", "devices/ata")
	link("class/block/sda", "devices/ata/block/sda")
	write("class/block/vda/size", "1\n")
	for name, want := range map[string]float64{"nvme0n1": 41.85, "nvme0n1p2": 41.85, "sda": 33, "vda": 0, "nothing": 0, "": 0, "../x": 0, "models/k3": 0} {
		if got := readTemperature(root, name); got != want {
			t.Errorf("%q: %g degrees, want %g", name, got, want)
		}
	}
	x, now := thermometer{root: root}, time.Unix(1e9, 0)
	d := &ssdio.DriveCounters{Name: "nvme0n1"}
	if got := x.of(d, now); got != 41.85 {
		t.Errorf("%g degrees", got)
	}
	write(sensor, "60000\n")
	if got := x.of(d, now.Add(warmthEvery-1)); got != 41.85 {
		t.Errorf("asked again at once: %g degrees", got)
	}
	if got := x.of(d, now.Add(warmthEvery)); got != 60 {
		t.Errorf("%g degrees", got)
	}
	d.Emulated = "limit=1MB/s"
	if got := x.of(d, now); got != 0 {
		t.Errorf("an emulated drive has %g degrees", got)
	}
}
