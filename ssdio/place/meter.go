package place

import "sync"

// A meter adds up progress from several goroutines and reports it one at a
// time.
type meter struct {
	report func(Progress)

	mu  sync.Mutex // guards below
	now Progress
}

func (m *meter) begin(total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = Progress{Total: total}
}

func (m *meter) add(phase, drive string, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Phase, m.now.Drive = phase, drive
	m.now.Done += bytes
	m.now.Total = max(m.now.Total, m.now.Done)
	if m.report != nil {
		m.report(m.now)
	}
}
