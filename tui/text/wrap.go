package text

import "unicode/utf8"

// A Range is a part of a string, from byte Start up to End, which takes Width
// cells.
type Range struct {
	Start, End, Width int
}

// Wrap breaks s into lines of at most w cells (one at least): at spaces, between
// wide letters as far as punctuation allows, and inside words that are longer
// than a line. Spaces at a break are dropped, those at the beginning of a
// paragraph kept. s must be clean and without colours. It has at least one line.
func Wrap(s string, w int) []string {
	ranges := WrapRanges(nil, s, w)
	lines := make([]string, len(ranges))
	for i, r := range ranges {
		lines[i] = s[r.Start:r.End]
	}
	return lines
}

// WrapRanges is Wrap without the strings: it appends the lines of s to dst, for
// callers that style parts of s.
func WrapRanges(dst []Range, s string, w int) []Range {
	w = max(w, 1)
	for start := 0; ; {
		end := start
		for end < len(s) && s[end] != '\n' {
			end++
		}
		dst = wrapLine(dst, s[:end], start, w)
		if end == len(s) {
			return dst
		}
		start = end + 1
	}
}

// wrapLine appends the lines of s[start:], which holds no break.
func wrapLine(dst []Range, s string, start, w int) []Range {
	line := Range{Start: start, End: start}
	// The last place where the line may break: what it keeps, and where the next
	// line would start. breakAt < 0 means none.
	breakAt, breakWidth, resume := -1, 0, 0
	width := 0      // cells of s[line.Start:i]
	var before rune // the rune before i, 0 at the start of a line
	text := false   // the line has something but spaces
	for i := start; i < len(s); {
		size, cw := 1, 1
		r := rune(s[i])
		if r >= 0x7f || i+1 < len(s) && s[i+1] >= utf8.RuneSelf {
			r, _ = utf8.DecodeRuneInString(s[i:])
			size, cw = Next(s[i:])
		}
		if r == ' ' {
			if text {
				if before != ' ' {
					breakAt, breakWidth = i, width
				}
				resume = i + 1
			}
			width++
			before = r
			i++
			continue
		}
		if text && before != ' ' && breaks(before, r, cw) {
			breakAt, breakWidth, resume = i, width, i
		}
		if width+cw > w {
			switch {
			case breakAt >= 0:
				line.End, line.Width = breakAt, breakWidth
				dst = append(dst, line)
				line.Start, width = resume, 0
			case width > 0:
				// A word longer than the line, or an indent that leaves no room.
				line.End, line.Width = i, width
				if !text {
					line.End, line.Width = line.Start, 0
				}
				dst = append(dst, line)
				line.Start, width = i, 0
			}
			text, breakAt = line.Start < i, -1
			before = 0
			if cw > w {
				// No room will ever be enough: leave the cluster out.
				if text {
					line.End, line.Width = i, width
					dst = append(dst, line)
				}
				i += size
				line.Start, width, text = i, 0, false
				continue
			}
			if text {
				// What moved down is rescanned: it may break again.
				i, width, text = line.Start, 0, false
				continue
			}
		}
		width += cw
		text = true
		before, _ = utf8.DecodeLastRuneInString(s[i : i+size])
		i += size
	}
	line.End, line.Width = len(s), width
	// Spaces at the end are no text to carry over; they would break the width.
	for line.End > line.Start && s[line.End-1] == ' ' {
		line.End--
		line.Width--
	}
	if line.Start == start || line.Start < line.End {
		dst = append(dst, line)
	}
	return dst
}

// breaks says whether a line may end between two letters without a space: on
// either side of a wide one (ideographs, kana, hangul, emoji), unless one of
// them is punctuation that must not stand at that end of a line, and behind a
// hyphen within a word.
func breaks(before, r rune, width int) bool {
	if before == 0 {
		return false
	}
	if before == '-' {
		return isLetter(r)
	}
	if before < 0x1100 && (r < 0x1100 || width < 2) {
		return false
	}
	if !ideographic(before) && (!ideographic(r) || width < 2) {
		return false
	}
	return !noStart(r) && !noEnd(before)
}

func isLetter(r rune) bool {
	return r|0x20 >= 'a' && r|0x20 <= 'z'
}

// ideographic says whether lines may break beside r. Half-width kana are narrow
// but break like the wide ones; hangul is wide but has spaces between its words.
func ideographic(r rune) bool {
	switch {
	case r >= 0xac00 && r <= 0xd7ff, r >= 0x3130 && r <= 0x318f:
		return false
	}
	return r >= 0x2e80 && r <= 0xabff || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xff00 && r <= 0xffef || r >= 0x1f000 && r <= 0x3ffff
}

// noStart are the characters that do not begin a line (JIS X 4051 and GB/T
// 15834, the common part).
func noStart(r rune) bool {
	switch r {
	case '、', '。', '，', '．', '・', '：', '；', '？', '！', '）', '］', '｝', '」', '』', '】', '〕', '》', '〉', '〗',
		'ー', '々', 'ゝ', 'ゞ', 'ぁ', 'ぃ', 'ぅ', 'ぇ', 'ぉ', 'っ', 'ゃ', 'ゅ', 'ょ', 'ァ', 'ィ', 'ゥ', 'ェ', 'ォ', 'ッ', 'ャ', 'ュ', 'ョ',
		'｡', '｣', '､', '”', '’', '…', '—', '%', ',', '.', ':', ';', '?', '!', ')', ']', '}', '"', '\'', '～':
		return true
	}
	return false
}

// noEnd are the characters that do not end a line.
func noEnd(r rune) bool {
	switch r {
	case '（', '［', '｛', '「', '『', '【', '〔', '《', '〈', '〖', '｢', '“', '‘', '(', '[', '{', '"', '\'', '$':
		return true
	}
	return false
}
