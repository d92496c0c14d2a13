package checkpoint

import "fmt"

// GenerationConfig is generation_config.json: what the model's makers advise for
// sampling. The official K3 file names the stop id only; nil means not named.
type GenerationConfig struct {
	EOS         []int    // eos_token_id, one or several; nil if absent
	DoSample    *bool    // do_sample
	Temperature *float64 // temperature, 0..100
	TopP        *float64 // top_p, 0..1
}

// ParseGeneration reads the text of a generation_config.json. Ids must be below
// vocab.
func ParseGeneration(data []byte, vocab int) (*GenerationConfig, error) {
	return parseGeneration(GenerationFile, data, vocab)
}

func parseGeneration(file string, data []byte, vocab int) (*GenerationConfig, error) {
	tree, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	f := fields{m: tree, err: &err}
	g := &GenerationConfig{EOS: f.tokens("eos_token_id", vocab)}
	if f.has("do_sample") {
		b := f.boolean("do_sample", false)
		g.DoSample = &b
	}
	if f.has("temperature") {
		x := f.real("temperature", 0, 100)
		g.Temperature = &x
	}
	if f.has("top_p") {
		x := f.real("top_p", 0, 1)
		g.TopP = &x
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return g, nil
}
