package nano

import (
	_ "embed"

	"deltafin/engine/checkpoint"
)

// Notice is the line that callers print wherever the model is used.
const Notice = "This is the built-in demonstration model, a toy of 12.56 M parameters: its answers are simple and often wrong."

// Embedding into strings, one per file, leaves the bytes in the read-only part of
// the program file; an embed.FS would hand out copies.
var (
	//go:embed model/config.json
	config string
	//go:embed model/generation_config.json
	generation string
	//go:embed model/model.safetensors.index.json
	index string
	//go:embed model/tiktoken.model
	ranks string
	//go:embed model/tokenizer_config.json
	special string

	//go:embed model/model-00001-of-000009.safetensors
	shard1 string
	//go:embed model/model-00002-of-000009.safetensors
	shard2 string
	//go:embed model/model-00003-of-000009.safetensors
	shard3 string
	//go:embed model/model-00004-of-000009.safetensors
	shard4 string
	//go:embed model/model-00005-of-000009.safetensors
	shard5 string
	//go:embed model/model-00006-of-000009.safetensors
	shard6 string
	//go:embed model/model-00007-of-000009.safetensors
	shard7 string
	//go:embed model/model-00008-of-000009.safetensors
	shard8 string
	//go:embed model/model-00009-of-000009.safetensors
	shard9 string
)

// Open opens the embedded model. An error means that the program was built from
// damaged files.
func Open() (*checkpoint.Checkpoint, error) {
	return checkpoint.OpenFS(memory{
		checkpoint.ConfigFile:               config,
		checkpoint.GenerationFile:           generation,
		checkpoint.IndexFile:                index,
		"tiktoken.model":                    ranks,
		"tokenizer_config.json":             special,
		"model-00001-of-000009.safetensors": shard1,
		"model-00002-of-000009.safetensors": shard2,
		"model-00003-of-000009.safetensors": shard3,
		"model-00004-of-000009.safetensors": shard4,
		"model-00005-of-000009.safetensors": shard5,
		"model-00006-of-000009.safetensors": shard6,
		"model-00007-of-000009.safetensors": shard7,
		"model-00008-of-000009.safetensors": shard8,
		"model-00009-of-000009.safetensors": shard9,
	})
}
