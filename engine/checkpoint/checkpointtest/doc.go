// Package checkpointtest writes small Kimi K3 checkpoints with random weights in
// the official layout, and breaks them on purpose. It is for tests of everything
// that opens a checkpoint.
//
// Use:
//
//	dir := t.TempDir()
//	err := checkpointtest.Write(dir, checkpointtest.Options{Config: checkpointtest.Small()}, 1)
//	err = checkpointtest.EditHeader(dir, "model-00002-of-000006.safetensors", func(h checkpointtest.Header) { ... })
//
// The same options and seed give the same bytes on every machine. Weights have
// sane sizes (matrices of about 1/sqrt(inputs), norms near 1), so that a forward
// pass gives finite numbers, but they mean nothing. With a vocabulary of 512 there
// is a tokenizer of single bytes too.
//
// It writes only inside the directory that it is given and never opens a model.
package checkpointtest
