// Package sample turns logits into a token: greedily, or at a temperature from
// the nucleus of the likeliest tokens (top-p).
//
// The random number of a choice is a function of the seed and the position of
// the token, nothing else: there is no generator state to save, so a run that is
// continued, forked or repeated makes the same choices. The arithmetic is fixed
// step by step, exponential included, so that it does so on every machine.
//
// It knows nothing of what tokens mean and never changes the logits.
package sample
