package main

import (
	"time"

	"deltafin/engine"
	"deltafin/engine/expert"
	jobs "deltafin/session/run/work"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// machine fills in drives, experts and where the time went.
func (m *sampler) machine(s *tui.Sample, st *jobs.State) {
	if !m.k.e.Streaming(&m.now) {
		return
	}
	if !st.Began.Equal(m.began) {
		m.began, m.seen, m.back = st.Began, 0, ""
		copyStreaming(&m.base, &m.now)
		copyStreaming(&m.token, &m.now)
	}
	switch {
	case len(st.Times) == 0:
		copyStreaming(&m.token, &m.now)
	case m.seen == 0: // what the prompt took is not the answer's
		copyStreaming(&m.base, &m.token)
	}
	m.tokens(st)
	s.Token = m.cost
	used := m.now
	used.Experts.Layers = append([]expert.Counts(nil), m.now.Experts.Layers...)
	used.Experts.Sub(&m.base.Experts)
	c := used.Experts.Total
	s.Prefetch = pane.Prefetch{Hit: c.Hit, InTime: c.InTime, Late: c.Late, Missed: c.Missed, Unused: c.Unused}
	if n := len(st.Times); n > 0 {
		s.Prefetch.Stall = c.Stall / time.Duration(n)
		for l := range used.Experts.Layers {
			if d := used.Experts.Layers[l].Stall / time.Duration(n); d > s.Prefetch.WorstStall {
				s.Prefetch.WorstLayer, s.Prefetch.WorstStall = l, d
			}
		}
	}
	x := m.now.Experts
	m.turnover(&x)
	s.Experts = pane.Experts{Budget: x.Bytes, Count: x.Cached, All: m.all, Evictions: m.evict, Reuse: m.reuse, Share: m.shares}
	if x.Slots > 0 {
		s.Experts.Held = x.Bytes / int64(x.Slots) * int64(x.Cached)
	}
	m.drives(s)
}

// turnover notes once a second how many experts had to go: those that came in and are
// not held.
func (m *sampler) turnover(x *expert.Stats) {
	now := time.Now()
	took := now.Sub(m.judged)
	if took < time.Second {
		return
	}
	moved := x.Total.InTime + x.Total.Late + x.Total.Missed + x.Total.Unused - int64(x.Cached)
	if !m.judged.IsZero() {
		m.evict = float64(max(moved-m.moved, 0)) / took.Seconds()
	}
	m.moved, m.judged = moved, now
}

// tokens notes where the time of the newest tokens went.
func (m *sampler) tokens(st *jobs.State) {
	n := len(st.Times)
	if n < m.seen {
		m.seen = 0
	}
	if n == m.seen {
		return
	}
	fresh := time.Duration(n - m.seen)
	took := time.Duration(0)
	for _, d := range st.Times[m.seen:] {
		took += d
	}
	old, total := &m.token.Experts.Total, &m.now.Experts.Total
	stall := total.Stall - old.Stall
	if uses := total.Uses() - old.Uses(); uses > 0 {
		m.reuse = float64(total.Hit-old.Hit) / float64(uses)
	}
	m.cost = pane.TokenTime{Took: took / fresh}
	if took > 0 {
		m.cost.Read = min(max(stall.Seconds()/took.Seconds(), 0), 1)
		m.cost.Math = 1 - m.cost.Read
	}
	for l := range m.now.Experts.Layers {
		d := m.now.Experts.Layers[l].Stall
		if l < len(m.token.Experts.Layers) {
			d -= m.token.Experts.Layers[l].Stall
		}
		m.cost.Stall = append(m.cost.Stall, d/fresh)
	}
	m.seen = n
	copyStreaming(&m.token, &m.now)
}

// copyStreaming is a reading that later ones do not overwrite.
func copyStreaming(dst, src *engine.Streaming) {
	layers, drives := dst.Experts.Layers[:0], dst.Drives.Drives[:0]
	*dst = *src
	dst.Experts.Layers = append(layers, src.Experts.Layers...)
	dst.Drives.Drives = append(drives, src.Drives.Drives...)
}
