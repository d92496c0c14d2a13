package main

import (
	"encoding/json"
	"math"
	"time"

	"deltafin/session/control"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// How much of the past goes over the socket: what a panel shows.
const (
	sentHistory = 120 // seconds of each drive
	sentTimes   = 200 // tokens
)

// addSample adds the figures for screens to a status: those of the screen here, so
// that who watches sees the same, else a look of its own, which while an answer is
// under way differs every time.
func (k *desk) addSample(out *control.Status) {
	k.mu.Lock()
	var s *tui.Sample
	switch {
	case k.gone:
	case k.screen != nil:
		s = k.screen.newest.Load()
		out.Change += s.Change
	default:
		if k.remote == nil {
			k.remote = newSampler(k)
		}
		h := heard{}
		if k.heard != nil {
			h = k.heard()
		}
		s = k.remote.sample(h)
		if s.State.Busy() || s.NextIn > 0 {
			k.looks++
			out.Change++
		}
	}
	k.mu.Unlock()
	if s != nil {
		out.Sample = encodeSample(s)
	}
}

// shownBy says which screen samples the work.
func (k *desk) shownBy(b *backend) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.screen = b
}

// shownNoMore takes over from a screen that ends, with what its sampler remembers.
func (k *desk) shownNoMore(b *backend, m *sampler) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looks += b.newest.Load().Change // so that changes go on growing
	k.screen, k.remote, k.heard = nil, m, b.said
}

// encodeSample is a Sample as it travels: without tokens, which are in the journal,
// without the past that nobody sees, and with figures of as many digits as are shown.
// Nil if it cannot travel: the watcher then has the status alone.
func encodeSample(s *tui.Sample) json.RawMessage {
	c := *s
	c.Tokens = nil
	c.Times = c.Times[max(len(c.Times)-sentTimes, 0):]
	c.Drives = append([]pane.Drive(nil), c.Drives...)
	for i := range c.Drives {
		d := &c.Drives[i]
		h := make([]float64, 0, sentHistory)
		for _, v := range d.History[max(len(d.History)-sentHistory, 0):] {
			if math.IsNaN(v) {
				v = -1 // JSON has no word for it; no rate is below zero
			}
			h = append(h, math.Round(v))
		}
		d.History = h
		d.Now, d.Ceiling = math.Round(d.Now), math.Round(d.Ceiling)
	}
	share := make([][]float64, 0, len(c.Experts.Share))
	for _, row := range c.Experts.Share {
		r := make([]float64, len(row))
		for i, v := range row {
			r[i] = math.Round(v*100) / 100
		}
		share = append(share, r)
	}
	c.Experts.Share = share
	data, err := json.Marshal(&c)
	if err != nil {
		return nil
	}
	return data
}

// decodeSample is the Sample of a status, or what the status alone says.
func decodeSample(st *control.Status, now time.Time) *tui.Sample {
	s := &tui.Sample{}
	if len(st.Sample) == 0 || json.Unmarshal(st.Sample, s) != nil {
		s = plainSample(st, now)
	}
	for i := range s.Drives {
		for j, v := range s.Drives[i].History {
			if v < 0 {
				s.Drives[i].History[j] = math.NaN()
			}
		}
	}
	if len(s.Experts.Share) == 0 {
		s.Experts.Share = nil
	}
	s.ReadOnly = true
	return s
}

// plainSample is what a status says without figures for screens.
func plainSample(st *control.Status, now time.Time) *tui.Sample {
	s := &tui.Sample{
		State: pane.State(st.State), Model: st.Model, Thread: st.Thread, Turn: st.Turn, Branch: st.Branch,
		Rate: st.Rate, Layer: st.Layer, Layers: st.Layers, Notice: st.Notice,
		Reading: pane.Reading{Tokens: st.Prompt, Share: st.Read, Left: secondsOf(st.Left)},
	}
	if st.State == "pausing" {
		s.State, s.Pausing = pane.Decoding, true
	}
	if st.Elapsed > 0 {
		s.Began = now.Add(-secondsOf(st.Elapsed))
	}
	if st.Error != "" {
		s.Card = &pane.Card{Title: "The answer stopped", Text: oneLine(st.Error) + ". What was shown is saved."}
	}
	return s
}
