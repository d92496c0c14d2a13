package main

import (
	"bytes"
	"fmt"
	"strings"
)

// localDoc names the primitives that are given buffers from their caller's stack, and
// what they mean in plain Go. They are methods that call the function of the level by
// its name: of a call through a field the compiler must assume that it keeps what it
// is given, and would put every such buffer on the heap.
var localDoc = map[string]string{
	"dot":           "acc[i%16] = fma32(a[i], b[i], acc[i%16])",
	"max":           "acc[i%16] = max(acc[i%16], x[i]), and any result with NaN",
	"expSum":        "x[i] = exp32(x[i]-m); acc[i%16] += x[i]",
	"sigmoid":       "y[i] = sigmoid32(x[i])",
	"sigmoidMul":    "y[i] *= sigmoid32(gate[i])",
	"situ":          "situGeneric",
	"decayLower":    "decayLowerGeneric",
	"decaySoftplus": "decaySoftplusGeneric",
}

// locals returns the methods for one architecture, which has these levels.
func locals(arch string, levels []*asm) []byte {
	var out bytes.Buffer
	header(&out, arch)
	for i, f := range levels[0].functions() {
		doc := localDoc[f.short]
		if doc == "" {
			continue
		}
		var names []string
		for _, a := range parseArgs(strings.Trim(f.args, "()")) {
			names = append(names, a.name)
		}
		call := func(m *asm) string {
			return fmt.Sprintf("%s(%s)", m.functions()[i].full, strings.Join(names, ", "))
		}
		fmt.Fprintf(&out, "\n// %s is %s.\nfunc (p *primitives) %s%s {\n", f.short, doc, f.short, f.args)
		if len(levels) == 2 {
			fmt.Fprintf(&out, "\tif p.width == %d {\n\t\t%s\n\t\treturn\n\t}\n", levels[1].width(), call(levels[1]))
		}
		fmt.Fprintf(&out, "\t%s\n}\n", call(levels[0]))
	}
	return out.Bytes()
}
