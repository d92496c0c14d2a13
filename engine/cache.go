package engine

// ResizeCache changes the memory for experts while the model runs, as expert.Store
// does: between the least that works and what the model was opened with. The text
// stays the same. It is an error for a model whose experts are mapped.
func (e *Engine) ResizeCache(bytes int64) error {
	if e.stream == nil {
		return &UsageError{Field: "expert cache", Reason: "the experts are mapped: there is no cache to resize"}
	}
	return e.stream.store.Resize(bytes)
}

// LeastCache is the smallest cache that works, 0 if experts are mapped.
func (e *Engine) LeastCache() int64 {
	if e.stream == nil {
		return 0
	}
	return e.stream.store.Least()
}

// ExpertShares is which share of each layer's experts is in memory, in parts of
// consecutive experts: [layers with experts][parts], 0 to 1; nil if experts are
// mapped. It reuses dst.
func (e *Engine) ExpertShares(dst [][]float64, parts int) [][]float64 {
	if e.stream == nil {
		return nil
	}
	return e.stream.store.Shares(dst, parts)
}
