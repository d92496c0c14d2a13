package engine

// syncDir does nothing: Windows offers no way to sync a directory, NTFS journals
// the rename itself.
func syncDir(string) error { return nil }
