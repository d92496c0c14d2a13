// Package paths knows where the program's own files belong on each system.
//
// It owns four folders: configuration, data (threads, turns, sources), state
// (heat, drive profiles, snapshots unless another drive was chosen) and cache
// (whatever may be deleted at any time). On Linux and the BSDs they follow the
// XDG base directory specification; on macOS and Windows they are the native
// places. DELTAFIN_HOME puts all four below one folder, for portable
// installations and for tests.
//
//	p, err := paths.Default()
//	store, err := session.Open(ctx, p.Data, nil)
//
// The package computes names only. It creates nothing and reads nothing but
// the environment.
package paths
