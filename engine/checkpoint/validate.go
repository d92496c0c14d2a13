package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Validate checks the whole text model against the config: every tensor that the
// forward pass needs is there with the right dtype and shape, all routed experts
// have one format, the padding of A_log is zero, and no other tensor carries a
// name of the text model (an unused bias or scale would mean that the model is
// not the one that is computed). The first fault is returned, a *TensorError.
// It reads a few kilobytes and takes well under a second for the full model.
func (c *Checkpoint) Validate(ctx context.Context) error {
	if err := c.usable(); err != nil {
		return fmt.Errorf("validating %s: %w", c.x.file, err)
	}
	needed := map[string]bool{}
	var err error
	c.cfg.Each(func(s Spec) bool {
		needed[s.Name] = true
		if strings.HasSuffix(s.Name, aLog) {
			_, err = c.ALog(s.Layer)
		} else {
			_, err = c.Expect(s.Name, s.Allowed, s.Shape...)
		}
		return err == nil
	})
	for l := 0; l < c.cfg.Layers && err == nil; l++ {
		if err = ctx.Err(); err == nil && c.cfg.MoE(l) {
			err = c.validateExperts(l)
		}
	}
	if err != nil {
		return err
	}
	return c.strangers(needed)
}

func (c *Checkpoint) validateExperts(layer int) error {
	format := c.ExpertFormat()
	for e := range c.cfg.Experts {
		for i, sl := range c.slots(layer, e) {
			w := i/2 + 1
			parts := format.parts(c.cfg.expertShape(w))
			if i%2 == 1 && len(parts) == 1 {
				if sl.part != noPart {
					return c.stranger(expertName(layer, e, w, sl.part), int(sl.shard))
				}
				continue
			}
			want := parts[i%2]
			if sl.part == want.part && sl.dtype&want.dtype != 0 &&
				int(sl.rows) == want.shape[0] && int(sl.cols) == want.shape[1] {
				continue
			}
			// The full model passes here half a million times without a name.
			if sl.part != noPart && sl.part != want.part {
				return &TensorError{Name: c.x.prefix + expertName(layer, e, w, sl.part), Err: ErrMismatch,
					File: c.files.path(c.x.shards[sl.shard].name), Got: partNames[sl.part],
					Want: partNames[want.part] + " as in the first expert of the model"}
			}
			_, err := c.Expect(expertName(layer, e, w, want.part), want.dtype, want.shape...)
			return err
		}
	}
	return nil
}

// strangers refuses text tensors that the model does not have.
func (c *Checkpoint) strangers(needed map[string]bool) error {
	var extra []string
	for name := range c.x.entries {
		if !needed[name] && !ignored([]byte(name)) {
			extra = append(extra, name)
		}
	}
	if extra == nil {
		return nil
	}
	first := slices.Min(extra)
	err := c.stranger(first, int(c.x.entries[first].shard))
	if len(extra) > 1 {
		return fmt.Errorf("%w (and %d more)", err, len(extra)-1)
	}
	return err
}

func (c *Checkpoint) stranger(name string, in int) error {
	return &TensorError{Name: c.x.prefix + name, File: c.files.path(c.x.shards[in].name), Err: ErrMismatch,
		Got: "in the checkpoint", Want: "no such tensor with this config"}
}
