package main

import (
	"time"

	"deltafin/ssdio"
)

// A thermometer tells how warm drives are, where the system has a sensor that anyone
// may read. Asking costs the drive a command, so it is asked seldom.
type thermometer struct {
	root string // of the system's files; "" for the real one
	at   map[string]warmth
}

type warmth struct {
	when    time.Time
	degrees float64 // Celsius, 0 if not known
}

// warmthEvery is how often a drive is asked.
const warmthEvery = 10 * time.Second

// of is the temperature of a drive in degrees Celsius, 0 if nothing tells it. An
// emulated drive has none: what the device below has is not its own.
func (t *thermometer) of(d *ssdio.DriveCounters, now time.Time) float64 {
	if d.Emulated != "" {
		return 0
	}
	if t.at == nil {
		t.at = map[string]warmth{}
	}
	r, ok := t.at[d.Name]
	if !ok || now.Sub(r.when) >= warmthEvery {
		r = warmth{now, readTemperature(t.root, d.Name)}
		t.at[d.Name] = r
	}
	return r.degrees
}
