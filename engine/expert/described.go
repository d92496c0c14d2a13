package expert

import (
	"fmt"

	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// A Shape describes the routed experts of a model that is not at hand.
type Shape struct {
	Layers  int   // of the model
	Dense   int   // of these, layers without routed experts, at the beginning
	Experts int   // in each of the others
	TopK    int   // that a token uses in a layer
	Bytes   int64 // of one expert
}

// Describe makes a catalog without a checkpoint, for simulations: its experts have
// sizes and no content, so that Matrices always fails.
func Describe(s Shape) (*Catalog, error) {
	if s.Layers <= 0 || s.Dense < 0 || s.Dense >= s.Layers || s.Experts <= 0 || s.TopK <= 0 || s.TopK > s.Experts || s.Bytes <= 0 ||
		s.Layers > maxTraceNumber || s.Experts > maxTraceNumber {
		return nil, fmt.Errorf("no model has experts like %+v: %w", s, ErrUnknown)
	}
	c := &Catalog{layers: s.Layers, experts: s.Experts, topK: s.TopK, first: make([]int, s.Layers), largest: s.Bytes}
	n := (s.Layers - s.Dense) * s.Experts
	c.parts = make([][2 * matrices]int64, n)
	c.model.Objects = make([]place.Object, 0, n)
	for layer := range s.Layers {
		if layer < s.Dense {
			c.first[layer] = -1
			continue
		}
		c.first[layer] = len(c.model.Objects)
		for e := range s.Experts {
			c.model.Objects = append(c.model.Objects, place.Object{Key: ssdio.Key{Layer: int32(layer), Expert: int32(e)}, Size: s.Bytes})
		}
	}
	return c, nil
}
