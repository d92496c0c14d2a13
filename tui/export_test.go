package tui

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"
)

// TickForTest makes the screen read its backend.
var TickForTest tea.Msg = tickMsg{}

// NewModel returns the screen's model without a terminal, which waits for nothing.
func NewModel(ctx context.Context, o Options) tea.Model {
	m := newModel(ctx, o, nil)
	m.wait = func(tea.Cmd) tea.Cmd { return nil }
	return m
}

// Settle runs a command and those within it and returns what they say.
func Settle(cmd tea.Cmd) []tea.Msg {
	if cmd == nil {
		return nil
	}
	msg := cmd()
	b, ok := msg.(tea.BatchMsg)
	if !ok {
		return []tea.Msg{msg}
	}
	var out []tea.Msg
	for _, cmd := range b {
		out = append(out, Settle(cmd)...)
	}
	return out
}

// LeadForTest is the time that opens the menu behind the first Ctrl+X.
var LeadForTest tea.Msg = leadMsg(1)

// SettledForTest is the time after which a window's nth change of width has rested.
func SettledForTest(n int) tea.Msg { return settledMsg(n) }

// NoHitsForTest is a search that found nothing.
func NoHitsForTest(query string) tea.Msg { return hitsMsg{query: query} }
