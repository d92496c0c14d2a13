package checkpoint

import (
	"bytes"
	"strconv"
)

// Parts of tensor names. Spec section 2.2.
const (
	wrapperPrefix = "language_model."
	layerPrefix   = "model.layers."
	expertInfix   = ".block_sparse_moe.experts."
)

// LayerName is the name of a tensor of a layer (from 0), e.g.
// LayerName(3, "self_attn.q_proj.weight").
func LayerName(layer int, rest string) string {
	return layerPrefix + strconv.Itoa(layer) + "." + rest
}

// expertName is the name of a part of one matrix (w1, w2 or w3) of an expert.
func expertName(layer, e, w int, part part) string {
	return layerPrefix + strconv.Itoa(layer) + expertInfix + strconv.Itoa(e) +
		".w" + strconv.Itoa(w) + "." + partNames[part]
}

// A part says what an expert's tensor is.
type part uint8

const (
	noPart part = iota
	plainPart
	packedPart
	scalePart
)

var partNames = [...]string{plainPart: "weight", packedPart: "weight_packed", scalePart: "weight_scale"}

// ignored reports tensors of the vision tower and the projector.
func ignored(name []byte) bool {
	return bytes.HasPrefix(name, []byte("vision_tower.")) || bytes.HasPrefix(name, []byte("mm_projector."))
}

// parseExpert takes an expert tensor's name (without the wrapper prefix) apart.
// Nearly all of the 497,220 names are such, so they are kept as numbers.
// Numbers must be canonical, so that no two names mean the same tensor.
func parseExpert(name []byte) (layer, e, w int, p part, ok bool) {
	rest, ok := bytes.CutPrefix(name, []byte(layerPrefix))
	if !ok {
		return
	}
	if layer, rest, ok = cutNumber(rest); !ok {
		return
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(expertInfix)); !ok {
		return
	}
	if e, rest, ok = cutNumber(rest); !ok {
		return
	}
	if len(rest) < 4 || rest[0] != '.' || rest[1] != 'w' || rest[2] < '1' || rest[2] > '3' || rest[3] != '.' {
		return 0, 0, 0, noPart, false
	}
	for p := plainPart; p <= scalePart; p++ {
		if string(rest[4:]) == partNames[p] {
			return layer, e, int(rest[2] - '0'), p, true
		}
	}
	return 0, 0, 0, noPart, false
}

// cutNumber splits canonical decimal digits (at most six) off the front.
func cutNumber(b []byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(b) && i < 6 && b[i] >= '0' && b[i] <= '9' {
		n = n*10 + int(b[i]-'0')
		i++
	}
	return n, b[i:], i == 1 || i > 1 && b[0] != '0'
}
