// Package checkpoint opens a Kimi K3 checkpoint in its official layout and says
// what lies where: config.json, generation_config.json,
// model.safetensors.index.json and the headers of the shards become a validated
// Config and a table from tensor names to (file, offset, length, dtype, shape).
//
// Use:
//
//	c, err := checkpoint.Open(dir)          // or OpenFS for a model in memory
//	err = c.Validate(ctx)                   // the whole text inventory is there
//	t, err := c.Expect("model.norm.weight", checkpoint.BF16|checkpoint.F32, c.Config().Hidden)
//	x, err := c.Expert(layer, e)            // one routed expert, MXFP4 or BF16
//
// Names are those of the text model, without the wrapper prefix
// "language_model." that the official files carry: whether a checkpoint has that
// prefix is found once, when it is opened, and a checkpoint that mixes both is
// refused. Tensors of the vision tower and its projector are counted and
// otherwise ignored; shards that hold nothing else may be absent and are not
// opened.
//
// Open maps every shard of the text model read-only and parses all headers, so
// that later lookups cannot fail on a broken file. Nothing of the weights is
// read or copied: Tensor.Data is a window into the mapping (or into the bytes of
// an in-memory model), its pages come in when they are touched. A mapping that
// the system refuses is an error; there is no second way. For all of the 497,220
// tensors of the full model the table takes about 16 MB.
//
// What it refuses: a config of another architecture or with a switch that the
// forward pass does not have (the error names the field, its value and the value
// that runs), numbers outside sane limits, an index or header that is not
// strict JSON, repeats a name, disagrees with the other, or claims bytes that
// overlap, leave gaps or lie outside the file.
//
// What it never does: it computes nothing with weights, caches nothing, writes
// no file and guesses no name.
//
// Caveats. Files must not change while they are open: the system kills a
// process that touches a mapped page which a truncation took away. Data is
// read-only memory and becomes invalid with Close; writing to it or using it
// later is a crash. Data starts where the file says, with no promise of alignment:
// read it byte by byte or through encoding/binary, or know that the machine
// does unaligned loads. Only 64-bit systems can map shards of the full model.
package checkpoint
