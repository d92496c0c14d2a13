package place

import (
	"crypto/sha256"
	"fmt"
	"math"

	"deltafin/ssdio"
)

// whole is the end of an object in the units of a Stripe. Integers, because a
// plan is kept in files and must give the same cuts on every machine.
const whole = 1 << 30

// A Stripe is the part of every object that a drive holds, in units of
// 1/2^30 of the object.
type Stripe struct{ From, To uint32 }

// Share is the width of the stripe as a fraction of the object.
func (s Stripe) Share() float64 { return float64(s.To-s.From) / whole }

// Bounds are the ends of the stripe as fractions of the object.
func (s Stripe) Bounds() (from, to float64) { return fraction(s.From), fraction(s.To) }

// blocks are the bounds of the stripe in the i-th object of the model, which has
// n blocks. A bound within a block is rounded up for some objects and down for
// others, spread evenly, so that over all of them every share is exact; equal
// bounds of two stripes stay equal, so nothing is left uncovered.
func (s Stripe) blocks(i, n int) (lo, hi int) {
	return cut(s.From, i, n), cut(s.To, i, n)
}

func cut(at uint32, i, n int) int {
	// Multiples of the golden ratio spread evenly for any number of objects.
	dither := uint32(i) * 0x9e3779b1
	return int((uint64(at)*uint64(n)<<2 + uint64(dither)) >> 32)
}

// A Candidate is a drive to plan for.
type Candidate struct {
	ID    string  // ssdio.Drive.ID
	Name  string  // for messages
	Speed float64 // bytes per second that it gives in this company
	Room  int64   // bytes that may be written to it
	// InPlace: the model's own files lie on it, so it holds every object whole
	// and nothing is written.
	InPlace bool
}

// PlanOptions are the options of NewPlan. The zero value means the defaults.
type PlanOptions struct {
	// Overlap bounds how much wider than its share of the speed a stripe gets
	// where there is room, as a fraction of that share; 0.2 is 20 %. 0 means
	// the default: as wide as the drive has room for, up to full copies. Below
	// zero: exact shares.
	Overlap float64
	// PackSize is the size of the files to write, in bytes. Default 8 GiB.
	PackSize int64
}

const (
	defaultPackSize = 8 << 30
	minPackSize     = 1 << 20
)

// A Plan says which part of every object each drive is to hold.
type Plan struct {
	Fingerprint string // of the model
	PackSize    int64  // bytes
	Drives      []Share
	// Rate is what the drives give together if all finish at the same moment,
	// in bytes per second.
	Rate float64
}

// A Share is one drive's part in a plan.
type Share struct {
	ID      string
	Name    string
	Speed   float64 // bytes per second, as planned with
	InPlace bool
	Stripe  Stripe
	// Work is the fraction of every object that the drive reads when all
	// finish together; the stripe is at least that wide.
	Work float64
	// Bytes is what the drive holds of the model, Written what its files take
	// with tables and padding (0 in place).
	Bytes, Written int64
}

// NewPlan plans elastic stripes: each drive gets a contiguous range of every
// object, in proportion to its speed as far as its room allows, then widened
// where there is room. It is a pure function of its arguments. The error is a
// *RoomError if the model does not fit.
func NewPlan(m *Model, drives []Candidate, o PlanOptions) (*Plan, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := checkCandidates(drives); err != nil {
		return nil, err
	}
	if o.PackSize == 0 {
		o.PackSize = defaultPackSize
	}
	if o.PackSize < minPackSize || math.IsNaN(o.Overlap) {
		return nil, fmt.Errorf("pack size %d is below %d, or overlap %v is no number: %w", o.PackSize, minPackSize, o.Overlap, ErrPlan)
	}
	p := &Plan{Fingerprint: m.Fingerprint, PackSize: o.PackSize, Drives: make([]Share, len(drives))}
	caps := make([]float64, len(drives))
	for i, c := range drives {
		p.Drives[i] = Share{ID: c.ID, Name: c.Name, Speed: c.Speed, InPlace: c.InPlace}
		if caps[i] = 1; c.InPlace {
			if err := m.allInPlace(); err != nil {
				return nil, err
			}
			continue
		}
		caps[i] = m.fits(c.Room, o.PackSize)
	}
	// The estimate of what fits is refined by what the stripes really take:
	// rounding to blocks and pages depends on where a stripe begins.
	for round := range 30 {
		works := fill(p.speeds(), caps)
		if works == nil {
			return nil, m.tooSmall(drives, o.PackSize)
		}
		p.place(works, caps, o.Overlap)
		if !p.measure(m, drives, caps, math.Ldexp(1e-6, round)) {
			return p, nil
		}
	}
	return nil, m.tooSmall(drives, o.PackSize)
}

func checkCandidates(drives []Candidate) error {
	if len(drives) == 0 || len(drives) > ssdio.MaxDrives {
		return fmt.Errorf("%d drives, 1 to %d can be planned for: %w", len(drives), ssdio.MaxDrives, ErrPlan)
	}
	seen := map[string]string{}
	for _, c := range drives {
		if _, err := parseID(c.ID); err != nil {
			return err
		}
		if other, twice := seen[c.ID]; twice {
			return fmt.Errorf("%s and %s are the same drive: name each folder once: %w", other, c.Name, ErrPlan)
		}
		seen[c.ID] = c.Name
		if !(c.Speed > 0) || math.IsInf(c.Speed, 0) {
			return fmt.Errorf("drive %s has a speed of %v bytes per second: measure it: %w", c.Name, c.Speed, ErrPlan)
		}
		if len(c.Name) > maxName {
			return fmt.Errorf("drive name of %d bytes, %d are the most: %w", len(c.Name), maxName, ErrPlan)
		}
	}
	return nil
}

func (m *Model) allInPlace() error {
	for i := range m.Objects {
		if _, _, ok := m.Objects[i].inPlace(); !ok {
			return fmt.Errorf("%s is scattered over its file and cannot be read in place; place it on drives instead: %w", m.Objects[i].Key, ErrPlan)
		}
	}
	return nil
}

// place gives every drive its stripe. Which drives are neighbours decides what a
// loss costs: if the given order leaves bytes with one holder although there is
// room for two copies, orders with two drives exchanged are tried too.
func (p *Plan) place(works, caps []float64, overlap float64) {
	n := len(works)
	widths := make([]float64, n)
	sum := 0.0
	for i, w := range works {
		widths[i] = caps[i]
		if !p.Drives[i].InPlace && overlap != 0 {
			widths[i] = min(caps[i], w*(1+max(overlap, 0)))
		}
		sum += widths[i]
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	best := p.stripes(order, works, widths)
	for k := 0; k < n*n && sum >= 2 && alone(best) > 0; k++ {
		a, b := k/n, k%n
		if a >= b {
			continue
		}
		order[a], order[b] = order[b], order[a]
		if s := p.stripes(order, works, widths); exposure(s) < exposure(best)-1e-9 {
			best = s
		} else {
			order[a], order[b] = order[b], order[a]
		}
	}
	for i, s := range best {
		p.Drives[i].Work = works[i]
		p.Drives[i].Stripe = Stripe{unit(s.from), unit(s.to)}
	}
	p.Rate = rate(p.spans(nil), p.speeds())
}

// stripes widens the shares that lie next to each other in an order of drives.
func (p *Plan) stripes(order []int, works, widths []float64) []span {
	cores := make([]span, len(order))
	wide := make([]float64, len(order))
	speeds := make([]float64, len(order))
	at, time := 0.0, 0.0 // time of an object of one byte, seconds
	for k, i := range order {
		cores[k] = span{at, at + works[i]}
		at += works[i]
		wide[k], speeds[k] = widths[i], p.Drives[i].Speed
		time = max(time, works[i]/speeds[k])
	}
	cores[len(cores)-1].to = 1 // whatever the sums round to
	// In whole units, as the stripes will be: rounding must leave no gap.
	fast := func(spans []span) bool {
		rounded := make([]span, len(spans))
		for i, s := range spans {
			rounded[i] = span{fraction(unit(s.from)), fraction(unit(s.to))}
		}
		return missing(rounded) == 0 && enough(rounded, speeds, time*(1+1e-7))
	}
	out := make([]span, len(order))
	for k, s := range widen(cores, wide, fast) {
		out[order[k]] = s
	}
	return out
}

// unit rounds a fraction to the units of a stripe. Equal fractions give equal
// units, so neighbours stay neighbours.
func unit(x float64) uint32 { return uint32(math.Round(min(max(x, 0), 1) * whole)) }

func fraction(u uint32) float64 { return float64(u) / whole }

// measure counts what the stripes take. It lowers the caps of drives on which
// they do not fit by what is too much and step (a block falls away only in steps),
// and says whether there were any.
func (p *Plan) measure(m *Model, drives []Candidate, caps []float64, step float64) (over bool) {
	for i := range p.Drives {
		d := &p.Drives[i]
		lay := newPacking(m, p, i)
		d.Bytes, d.Written = lay.bytes, 0
		if d.InPlace {
			continue
		}
		d.Written = lay.written()
		if excess := d.Written - drives[i].Room; excess > 0 && d.Bytes > 0 {
			caps[i] = max(0, caps[i]-float64(excess)/float64(m.bytes())-step)
			over = true
		}
	}
	return over
}

// fits is the width of the stripe that certainly fits into room bytes, as a
// fraction of every object.
func (m *Model) fits(room, packSize int64) float64 {
	all := newPacking(m, &Plan{PackSize: packSize, Drives: []Share{{Stripe: Stripe{0, whole}}}}, 0)
	if all.written() <= room {
		return 1
	}
	fixed := all.written() - all.padded()
	if room <= fixed {
		return 0
	}
	return min(1, float64(room-fixed)/float64(all.padded()))
}

func (m *Model) tooSmall(drives []Candidate, packSize int64) error {
	all := newPacking(m, &Plan{PackSize: packSize, Drives: []Share{{Stripe: Stripe{0, whole}}}}, 0)
	e := &RoomError{Need: all.written()}
	for _, c := range drives {
		room := max(c.Room, 0)
		e.Have += room
		e.Drives = append(e.Drives, RoomOf{c.Name, room})
	}
	// Tables, pages and blocks cost a little on every drive: what is named as
	// missing must not read as nothing.
	e.Need = max(e.Need, e.Have+ssdio.BlockSize)
	return e
}

func (p *Plan) speeds() []float64 {
	out := make([]float64, len(p.Drives))
	for i := range p.Drives {
		out[i] = p.Drives[i].Speed
	}
	return out
}

// spans are the stripes as fractions; of drives in lost, nothing.
func (p *Plan) spans(lost map[int]bool) []span {
	out := make([]span, len(p.Drives))
	for i := range p.Drives {
		if s := p.Drives[i].Stripe; !lost[i] {
			out[i] = span{fraction(s.From), fraction(s.To)}
		}
	}
	return out
}

// A Loss says what is left of a plan without one drive.
type Loss struct {
	Covered float64 // fraction of every object that the others hold
	Rate    float64 // bytes per second that they give, 0 if Covered is below 1
}

// Lose says what happens if the i-th drive is lost.
func (p *Plan) Lose(i int) Loss {
	s := p.spans(map[int]bool{i: true})
	l := Loss{Covered: 1 - missing(s)}
	if l.Covered == 1 {
		l.Rate = rate(s, p.speeds())
	}
	return l
}

// Copies is how many copies of the model the drives hold together, as a
// fraction of its bytes: 1 is exact shares, the number of drives full copies.
func (p *Plan) Copies() float64 {
	n := 0.0
	for i := range p.Drives {
		n += p.Drives[i].Stripe.Share()
	}
	return n
}

// ID identifies the plan: it changes with everything that changes a file.
func (p *Plan) ID() [16]byte {
	h := sha256.Sum256(append([]byte(p.Fingerprint), p.encode()...))
	return [16]byte(h[:16])
}

// index finds a drive in the plan, -1 if it has no part in it.
func (p *Plan) index(id string) int {
	for i := range p.Drives {
		if p.Drives[i].ID == id {
			return i
		}
	}
	return -1
}
