package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readTemperature asks the sensor of a block device, such as nvme0n1: the kernel's
// hwmon interface puts it below the device, or below its controller. Partitions are
// looked up by their disk. 0 if there is none.
func readTemperature(root, device string) float64 {
	if root == "" {
		root = "/sys"
	}
	if device == "" || strings.ContainsAny(device, "/\\*?[") {
		return 0 // a folder's name, not a device's
	}
	disk := filepath.Join(root, "class", "block", device)
	if _, err := os.Stat(filepath.Join(disk, "partition")); err == nil {
		real, err := filepath.EvalSymlinks(disk)
		if err != nil {
			return 0
		}
		disk = filepath.Dir(real)
	}
	for _, where := range []string{"device/hwmon/hwmon*/temp1_input", "device/hwmon*/temp1_input", "device/device/hwmon/hwmon*/temp1_input"} {
		names, err := filepath.Glob(filepath.Join(disk, where))
		if err != nil {
			return 0
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				continue // a sensor that sleeps, or is not for us
			}
			if milli, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && milli > 0 {
				return float64(milli) / 1000
			}
		}
	}
	return 0
}
