package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteUnits are powers of a thousand, as drives are sold.
var byteUnits = []string{"B", "KB", "MB", "GB", "TB"}

// bytesText prints a size for people, with three digits.
func bytesText(n int64) string {
	v, unit := float64(n), 0
	for v >= 999.5 && unit < len(byteUnits)-1 {
		v /= 1000
		unit++
	}
	if unit == 0 || v >= 99.95 {
		return fmt.Sprintf("%.0f %s", v, byteUnits[unit])
	}
	return fmt.Sprintf("%.1f %s", v, byteUnits[unit])
}

// parseBytes reads a size such as 500M, 20G or 1.5TB.
func parseBytes(s string) (int64, error) {
	num := strings.TrimRight(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(s)), "B"), " ")
	scale := 1.0
	if i := strings.IndexByte("KMGT", lastByte(num)); i >= 0 && num != "" {
		scale = math.Pow(1000, float64(i+1))
		num = num[:len(num)-1]
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil || !(v >= 0 && v*scale < math.MaxInt64) {
		return 0, fmt.Errorf("%q is no size", s)
	}
	return int64(v * scale), nil
}

func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}
