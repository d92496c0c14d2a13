package tokenizer

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds on a rank file. The official one has 163,584 lines, the longest of
// which holds 344 characters of base64.
const (
	maxRankFile = 512 << 20
	maxRankLine = 64 << 10
)

// rankList is a rank file in memory: the tokens ordered by rank.
type rankList struct {
	blob string   // bytes of all tokens, in order of rank
	off  []uint32 // token r is blob[off[r]:off[r+1]]; one entry more than tokens
	line []int32  // token r stood on this line of the file, counted from 1
}

// readRanks parses a tiktoken rank file: on each line the base64 of a token's
// bytes, one space, its rank in decimal (spec 5.1). The lines may be in any
// order, but the ranks must be exactly 0..n-1. Empty lines are skipped.
func readRanks(r io.Reader) (rankList, error) {
	type entry struct {
		rank, off, end uint32
		line           int32
	}
	var (
		entries []entry
		blob    []byte
		line    int32
	)
	limited := &io.LimitedReader{R: r, N: maxRankFile + 1}
	sc := bufio.NewScanner(limited)
	sc.Buffer(make([]byte, 0, 4096), maxRankLine)
	for sc.Scan() {
		line++
		text := strings.TrimSuffix(sc.Text(), "\r")
		if text == "" {
			continue
		}
		start := uint32(len(blob))
		rank, bytes, err := parseRankLine(text)
		if err != nil {
			return rankList{}, fmt.Errorf("line %d: %w", line, err)
		}
		blob = append(blob, bytes...)
		entries = append(entries, entry{rank, start, uint32(len(blob)), line})
	}
	if err := sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		return rankList{}, fmt.Errorf("line %d: longer than %d bytes: not a rank file", line+1, maxRankLine)
	} else if err != nil {
		return rankList{}, fmt.Errorf("after line %d: %w", line, err)
	}
	if limited.N <= 0 {
		return rankList{}, fmt.Errorf("larger than %d bytes: not a rank file", maxRankFile)
	}
	if len(entries) == 0 {
		return rankList{}, errors.New("holds no ranks")
	}

	// With n lines, ranks below n and no rank twice there can be no gap. A
	// repeated rank also shows as a gap elsewhere, so it is looked for first.
	n := len(entries)
	at := make([]int32, n) // rank -> index in entries, plus 1
	for i, e := range entries {
		if int(e.rank) >= n {
			continue
		}
		if j := at[e.rank]; j != 0 {
			return rankList{}, fmt.Errorf("line %d: rank %d was already given on line %d", e.line, e.rank, entries[j-1].line)
		}
		at[e.rank] = int32(i + 1)
	}
	for _, e := range entries {
		if int(e.rank) >= n {
			return rankList{}, fmt.Errorf("line %d: rank %d, but the file holds only %d tokens: ranks must be 0..%d without gaps", e.line, e.rank, n, n-1)
		}
	}
	out := rankList{off: make([]uint32, 1, n+1), line: make([]int32, 0, n)}
	var sorted strings.Builder
	sorted.Grow(len(blob))
	for _, j := range at {
		e := entries[j-1]
		sorted.Write(blob[e.off:e.end])
		out.off = append(out.off, uint32(sorted.Len()))
		out.line = append(out.line, e.line)
	}
	out.blob = sorted.String()
	return out, nil
}

// parseRankLine splits "<base64> <rank>".
func parseRankLine(text string) (rank uint32, bytes []byte, err error) {
	code, number, ok := strings.Cut(text, " ")
	if !ok {
		return 0, nil, errors.New(`want "<base64> <rank>"; there is no space`)
	}
	bytes, err = base64.StdEncoding.Strict().DecodeString(code)
	if err != nil {
		return 0, nil, fmt.Errorf("malformed base64: %w", err)
	}
	if len(bytes) == 0 {
		return 0, nil, errors.New("a token of no bytes")
	}
	v, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return 0, nil, fmt.Errorf("malformed rank %.40q: want a decimal number", number)
	}
	return uint32(v), bytes, nil
}
