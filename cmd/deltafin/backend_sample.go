package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"deltafin/engine"
	"deltafin/engine/memory"
	"deltafin/session"
	answers "deltafin/session/run"
	jobs "deltafin/session/run/work"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// A sampler turns what the driver and the engine say into Samples. It remembers what
// differences need, and belongs to one goroutine.
type sampler struct {
	k     *desk
	all   int       // experts of the model, in all layers
	began time.Time // of the answer that base belongs to
	base  engine.Streaming
	now   engine.Streaming
	token engine.Streaming // at the newest token, or as far as the prompt was read
	seen  int              // tokens of the answer at that time
	cost  pane.TokenTime
	reuse float64   // of the newest token's experts, share that was held
	slow  time.Time // when the slow parts were looked at
	rates time.Time // when the drives' rates were noted

	moved  int64   // experts that came in, less those that are held
	evict  float64 // how fast that grows, a second
	judged time.Time

	history [][]float64   // per drive
	watches []driveWatch  // per drive
	window  time.Duration // of work after which a drive's speed is judged
	back    string        // which drive has come back
	heat    thermometer
	shares  [][]float64
	memory  pane.Memory
	queue   []pane.QueueItem
}

// What is looked at once a second, and the parts of a layer in the map of experts.
const (
	slowEvery  = time.Second
	mapParts   = 16
	historyMax = 600
)

func newSampler(k *desk) *sampler {
	cfg := k.e.Info().Config
	return &sampler{k: k, all: cfg.Experts * cfg.MoELayers(), window: slowWindow}
}

// sample is the state now.
func (m *sampler) sample(h heard) *tui.Sample {
	st := m.k.d.State()
	info := m.k.e.Info()
	s := &tui.Sample{
		State: pane.State(st.Phase), Pausing: st.Pausing, Model: info.Name, Context: info.Config.MaxContext,
		Used: st.Prefill.Tokens + len(st.Answer), Thread: st.Thread, Turn: st.Turn, Branch: st.Branch, Question: st.Question,
		Tokens: st.Answer, Times: st.Times, Rate: st.Rate(30), Began: st.Began, Answers: st.Answers,
	}
	s.Verb, s.Card = stopCard(st, s.Context)
	if st.Recovered && st.Phase == jobs.Paused && s.Verb == "" {
		s.Verb = "RECOVERED"
	}
	m.machine(s, st)
	m.conditions(s, h)
	if info.Trunk != "" { // behind what is wrong: it is so for as long as the model is open
		s.Marks = append(s.Marks, pane.Mark{Text: info.Trunk, Short: engine.Int8Short})
	}
	s.Notice = m.notice(st, h)
	if !s.State.Busy() {
		s.Ended = st.Ended
	}
	if !st.Next.IsZero() {
		s.NextIn = max(time.Until(st.Next), time.Millisecond)
	}
	s.Layer, s.Layers = m.k.d.Layer()
	s.Reading = reading(st, info.PrefillRows)
	m.slowly(s, st)
	return s
}

// conditions adds what lasts while the work goes on. The card is of the worst one,
// unless something has stopped the work.
func (m *sampler) conditions(s *tui.Sample, h heard) {
	var worst *pane.Card
	add := func(mark pane.Mark, c *pane.Card) {
		if c == nil {
			return
		}
		if s.Marks = append(s.Marks, mark); worst == nil {
			worst = c
		}
	}
	now := time.Now()
	if h.memory != nil {
		add(pane.Mark{Text: "LOW MEMORY"}, memoryCard(h.memory))
	}
	for _, bad := range []bool{true, false} {
		for i := range m.watches {
			if mark, c := m.watches[i].tell(m.now.Drives.Drives[i].Name, now); mark.Bad == bad {
				add(mark, c)
			}
		}
	}
	if s.Card == nil {
		s.Card = worst
	}
}

// notice is the line of what else there is to say, the newest answer's first.
func (m *sampler) notice(st *jobs.State, h heard) string {
	switch {
	case st.Notice.Text != "" && st.Notice.Kind != answers.NoticePaused && st.Notice.Kind != answers.NoticeError: // the state says those already
		return capital(st.Notice.Text)
	case st.Recovered && st.Phase == jobs.Paused:
		return fmt.Sprintf("The last run ended in the middle of this answer. It is kept up to token %s. Enter goes on from there.", pane.Count(int64(len(st.Answer))))
	case m.back != "":
		return m.back
	case h.notice != "":
		return h.notice
	case st.Answers == 0 && st.Thread == 0:
		return m.k.e.Info().Notice
	}
	return cutShort(st)
}

// reading is how far the prompt is.
func reading(st *jobs.State, rows int) pane.Reading {
	p := st.Prefill
	work := p.Tokens - p.Reused
	if work <= 0 || rows <= 0 {
		return pane.Reading{Tokens: p.Tokens, Reused: p.Reused}
	}
	r := pane.Reading{
		Tokens: p.Tokens, Reused: p.Reused, Share: p.Fraction(), Left: p.Left,
		Pass: min((p.Done-p.Reused)/rows+1, (work+rows-1)/rows), Passes: (work + rows - 1) / rows,
		LeftLow: p.Left * 8 / 10, LeftHigh: p.Left * 13 / 10,
	}
	if p.Elapsed > 0 {
		r.Rate = p.Fraction() * float64(work) / p.Elapsed.Seconds()
	}
	return r
}

// drives fills in the drives, and their rates once a second.
func (m *sampler) drives(s *tui.Sample) {
	now := time.Now()
	note := now.Sub(m.rates) >= time.Second
	if note {
		m.rates = now
	}
	for i := range m.now.Drives.Drives {
		d := &m.now.Drives.Drives[i]
		if i == len(m.history) {
			m.history = append(m.history, nil)
			m.watches = append(m.watches, driveWatch{})
		}
		if note {
			// A copy, since the Samples that are out share the old one.
			h := m.history[i]
			h = append(h[max(len(h)-historyMax+1, 0):len(h):len(h)], d.Now)
			m.history[i] = h
		}
		ceiling := d.Ceiling
		if ceiling == 0 && i < len(m.k.limits) {
			ceiling = m.k.limits[i]
		}
		s.Drives = append(s.Drives, pane.Drive{
			Name: d.Name, Now: d.Now, Ceiling: ceiling, History: m.history[i], P99: d.Latency.Quantile(0.99),
			Depth: int(d.InFlight), Errors: d.Errors + d.Mismatch, Retries: d.Retries, Lost: d.Down,
			Temperature: m.heat.of(d, now),
		})
		if said := m.watches[i].look(d, ceiling, m.watches, m.window, now); said != "" {
			m.back = said
		}
	}
}

// slowly looks at what need not be looked at often.
func (m *sampler) slowly(s *tui.Sample, st *jobs.State) {
	if now := time.Now(); now.Sub(m.slow) >= slowEvery || !s.State.Busy() {
		m.slow = now
		if r, err := memory.Read(); err == nil {
			m.memory = pane.Memory{Used: r.Resident, Total: r.Total, Others: max(r.Total-r.Available-r.Own, 0)}
		}
		m.shares = m.k.e.ExpertShares(nil, mapParts)
		m.queue = m.waiting()
	}
	s.Memory, s.Queue = m.memory, m.queue
	if s.Experts.Share != nil || m.shares != nil {
		s.Experts.Share = m.shares
	}
}

// waiting is the queue, with how long each is likely to take.
func (m *sampler) waiting() []pane.QueueItem {
	items, times, err := m.k.store.EstimateQueue(context.Background(), m.k.e.Info().Fingerprint)
	if err != nil {
		return m.queue // it shows what it knew; the next look may work
	}
	var out []pane.QueueItem
	for i := range items {
		q := pane.QueueItem{ID: items[i].ID, Text: items[i].Text}
		if i < len(times) && times[i].Runs > 0 {
			q.Likely = times[i].Likely
		}
		out = append(out, q)
	}
	return out
}

// likely is an estimate for people, zero if it rests on nothing.
func likely(e session.Estimate) session.Estimate {
	if e.Runs == 0 || math.IsNaN(e.Likely.Seconds()) {
		return session.Estimate{}
	}
	return e
}
