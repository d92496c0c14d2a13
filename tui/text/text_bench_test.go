package text_test

import (
	"strings"
	"testing"

	"deltafin/tui/text"
)

func BenchmarkWidthASCII80(b *testing.B) {
	s := strings.Repeat("words and ", 8)
	for b.Loop() {
		text.Width(s)
	}
}

func BenchmarkWidthCJK80(b *testing.B) {
	s := strings.Repeat("三种测年方法在上部", 5)[:3*40]
	for b.Loop() {
		text.Width(s)
	}
}

func BenchmarkWrapASCII4K(b *testing.B) {
	s := strings.Repeat("words and longer words ", 178)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		text.WrapRanges(nil, s, 80)
	}
}

func BenchmarkWrapCJK4K(b *testing.B) {
	s := strings.Repeat("三种测年方法在上部一致。", 113)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		text.WrapRanges(nil, s, 80)
	}
}
