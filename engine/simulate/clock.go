package simulate

import (
	"container/heap"
	"errors"
	"time"

	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// errIdle: the engine waits and no read is under way, so it would wait forever. It
// means a mistake in the scheduler.
var errIdle = errors.New("the engine waits for an expert that nobody reads")

// clock is virtual time: a ssdio.Timeline whose drives are models.
type clock struct {
	now    time.Duration
	events events
	order  int64 // of events made, so that equal times keep it
	drives []*emulate.Model
	limits []float64           // bytes per second, with the hub's share
	busy   []time.Duration     // until when a drive has work
	trunk  <-chan ssdio.Result // results that the store does not take
	landed <-chan ssdio.Result
	idle   func() // called where a wait cannot end
}

// event is something that happens at a time.
type event struct {
	at    time.Duration
	order int64
	do    func()
}

// Now implements ssdio.Timeline.
func (c *clock) Now() time.Duration { return c.now }

// Read implements ssdio.Timeline.
func (c *clock) Read(drive int, n int64) time.Duration {
	end := c.drives[drive].Read(n, c.now)
	c.busy[drive] = max(c.busy[drive], end)
	return end
}

// At implements ssdio.Timeline.
func (c *clock) At(t time.Duration, do func()) {
	c.order++
	heap.Push(&c.events, event{max(t, c.now), c.order, do})
}

// Delivered implements ssdio.Timeline.
func (c *clock) Delivered(to <-chan ssdio.Result) {
	if to != c.trunk {
		c.landed = to
	}
}

// step goes to the next event. It is false if there is none.
func (c *clock) step() bool {
	if len(c.events) == 0 {
		return false
	}
	e := heap.Pop(&c.events).(event)
	c.now = e.at
	e.do()
	return true
}

// advance lets time pass in which the processor is busy.
func (c *clock) advance(d time.Duration) {
	end := c.now + max(d, 0)
	for len(c.events) > 0 && c.events[0].at <= end {
		c.step()
	}
	c.now = end
}

// wait lets time pass until the store has something to take in, and then has it
// take that in. The store may return from wait without having done so, because an
// older arrival had left a signal; it then calls again and finds the result there.
func (c *clock) wait(take func()) {
	for len(c.landed) == 0 {
		if !c.step() {
			c.idle()
			break
		}
	}
	take()
}

// load is what the busy drives write to memory, in bytes per second.
func (c *clock) load() float64 {
	sum := 0.0
	for i, until := range c.busy {
		if until > c.now {
			sum += c.limits[i]
		}
	}
	return sum
}

// events is a heap by time and then by age.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}
