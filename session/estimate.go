package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// An Estimate says how long something will take, from what similar things took.
type Estimate struct {
	Low, Likely, High time.Duration // about one in ten runs lies outside on either side
	Prefill, Decode   time.Duration // the parts of Likely
	Runs              int           // measured runs it rests on; below 3 the range is a guess
}

// Work describes something to be estimated.
type Work struct {
	Fingerprint string // of the weights; speeds of other weights do not count
	Effort      string // answers of the same effort give the expected length
	Prompt      int    // tokens to compute before the first word
	Answer      int    // tokens to generate, 0: as answers of this effort have had
}

// recent is how many runs an estimate looks at: enough for a spread, few enough
// to follow a new drive or a changed cache.
const recent = 40

// Estimate tells how long some work will take here. Without a single measured
// run of these weights the error is ErrNoData.
func (s *Store) Estimate(ctx context.Context, work Work) (e Estimate, err error) {
	err = s.view(ctx, "estimating", func(c *conn) (err error) {
		e, err = estimateTx(c, work)
		return err
	})
	return e, err
}

// EstimateQueue tells for every item of the queue how long it will take, in
// order; items that nothing measured can tell about have the zero Estimate.
// fingerprint is the loaded model's.
func (s *Store) EstimateQueue(ctx context.Context, fingerprint string) (items []QueueItem, est []Estimate, err error) {
	err = s.view(ctx, "estimating the queue", func(c *conn) (err error) {
		if items, err = queueTx(c); err != nil {
			return err
		}
		est = make([]Estimate, len(items))
		for i, q := range items {
			prompt, err := promptSize(c, q, fingerprint)
			if err != nil {
				return err
			}
			est[i], err = estimateTx(c, Work{Fingerprint: fingerprint, Effort: q.Settings.Effort, Prompt: prompt, Answer: 0})
			if err != nil && !isNoData(err) {
				return err
			}
		}
		return nil
	})
	return items, est, err
}

// promptSize guesses how many tokens a question makes the model read: its own,
// and those of its thread unless a snapshot of the thread holds them.
func promptSize(c *conn, q QueueItem, fingerprint string) (int, error) {
	n := q.Tokens
	if n == 0 {
		n = len(q.Text)/4 + 16 // a token is about four bytes; some markup
		for _, src := range q.Sources {
			n += src.Tokens
		}
	}
	if q.Thread == 0 {
		return n, nil
	}
	key, err := threadKey(c, q.Thread)
	if err != nil {
		return 0, err
	}
	b, err := branchByName(c, key, q.Branch)
	if err != nil {
		return 0, err
	}
	held, err := c.number(`SELECT coalesce(max(position), 0) FROM snapshot WHERE thread=? AND fingerprint=?`, key, fingerprint)
	if err != nil {
		return 0, err
	}
	path, err := c.number(`WITH RECURSIVE path(key) AS (SELECT ?1 UNION ALL SELECT parent FROM turn JOIN path ON turn.key=path.key WHERE parent<turn.key)
		SELECT coalesce(sum(tokens), 0) FROM path JOIN turn ON turn.key=path.key`, b.leaf)
	return n + max(int(path-held), 0), err
}

func isNoData(err error) bool { return errors.Is(err, ErrNoData) }

func estimateTx(c *conn, work Work) (Estimate, error) {
	var prefill, decode []sample
	err := c.each(`SELECT prefill, prefill_ns, decode, decode_ns FROM timing WHERE fingerprint=? ORDER BY key DESC LIMIT ?`,
		[]any{work.Fingerprint, recent}, func(st *sqlite3.Stmt) error {
			if n := st.ColumnFloat(0); n > 0 {
				prefill = append(prefill, sample{n, st.ColumnFloat(1)})
			}
			if n := st.ColumnFloat(2); n > 0 {
				decode = append(decode, sample{n, st.ColumnFloat(3)})
			}
			return nil
		})
	if err != nil {
		return Estimate{}, err
	}
	if len(decode) == 0 || len(prefill) == 0 && work.Prompt > 0 {
		return Estimate{}, fmt.Errorf("no finished run of model %q: %w", work.Fingerprint, ErrNoData)
	}
	lengths, err := answerLengths(c, work)
	if err != nil {
		return Estimate{}, err
	}
	reading, writing := fit(prefill), fit(decode)
	var e Estimate
	e.Runs = len(decode)
	readLow, readMid, readHigh := reading.predict(float64(work.Prompt))
	writeLow, _, _ := writing.predict(quantile(lengths, 0.1))
	_, writeMid, _ := writing.predict(quantile(lengths, 0.5))
	_, _, writeHigh := writing.predict(quantile(lengths, 0.9))
	e.Prefill, e.Decode = time.Duration(readMid), time.Duration(writeMid)
	e.Low, e.Likely, e.High = time.Duration(readLow+writeLow), e.Prefill+e.Decode, time.Duration(readHigh+writeHigh)
	if e.Runs < 3 { // no spread to speak of was seen
		e.Low, e.High = e.Low*7/10, e.High*3/2
	}
	e.Low, e.High = min(e.Low, e.Likely), max(e.High, e.Likely)
	return e, nil
}

// answerLengths returns how long answers of the effort were, in tokens.
func answerLengths(c *conn, work Work) ([]float64, error) {
	if work.Answer > 0 {
		return []float64{float64(work.Answer)}, nil
	}
	var out []float64
	for _, sql := range []string{
		`SELECT tokens FROM turn JOIN settings ON settings.key=turn.settings WHERE role='assistant' AND status='done'
			AND coalesce(json ->> 'effort', '')=?1 ORDER BY turn.key DESC LIMIT ?2`,
		// No answer of this effort yet: those of any effort.
		`SELECT tokens FROM turn WHERE role='assistant' AND status='done' AND ?1 IS NOT NULL ORDER BY key DESC LIMIT ?2`,
	} {
		err := c.each(sql, []any{work.Effort, recent}, func(st *sqlite3.Stmt) error {
			out = append(out, st.ColumnFloat(0))
			return nil
		})
		if err != nil || len(out) > 0 {
			return out, err
		}
	}
	return nil, fmt.Errorf("no finished answer: %w", ErrNoData)
}

// A sample is a measured run: so many tokens took so many nanoseconds.
type sample struct{ n, ns float64 }

// A line predicts time as a fixed part and a part per token, with the spread
// of the samples around it. Prefill has a large fixed part: a short prompt
// reads nearly as many experts as a long one.
type line struct {
	fixed, each float64
	low, high   float64 // tenth and ninetieth percentile of measured / predicted
}

// fit draws a line through samples by least squares, with neither part
// negative. No samples give a line that predicts nothing.
func fit(samples []sample) line {
	var n, sx, sy, sxx, sxy float64
	for _, s := range samples {
		n, sx, sy, sxx, sxy = n+1, sx+s.n, sy+s.ns, sxx+s.n*s.n, sxy+s.n*s.ns
	}
	if n == 0 {
		return line{low: 1, high: 1}
	}
	l := line{each: sy / sx} // through zero
	if d := n*sxx - sx*sx; d > 1e-9*sxx {
		if b := (n*sxy - sx*sy) / d; b >= 0 {
			if a := (sy - b*sx) / n; a >= 0 {
				l = line{fixed: a, each: b}
			}
		} else {
			l = line{fixed: sy / n}
		}
	}
	ratios := make([]float64, 0, len(samples))
	for _, s := range samples {
		if p := l.fixed + l.each*s.n; p > 0 {
			ratios = append(ratios, s.ns/p)
		}
	}
	l.low, l.high = quantile(ratios, 0.1), quantile(ratios, 0.9)
	return l
}

// predict returns low, likely and high for n tokens, in nanoseconds.
func (l line) predict(n float64) (low, mid, high float64) {
	if n <= 0 {
		return 0, 0, 0
	}
	mid = l.fixed + l.each*n
	return mid * l.low, mid, mid * l.high
}

// quantile interpolates between the sorted values; of none it is 0.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	at := q * float64(len(v)-1)
	i := int(math.Floor(at))
	if i+1 >= len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}
