package paths

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// HomeVar is the environment variable that puts every folder below one place.
const HomeVar = "DELTAFIN_HOME"

// app is the folder's name below a shared place.
const app = "deltafin"

// ErrNoHome: neither DELTAFIN_HOME nor the user's home folder is known.
var ErrNoHome = errors.New("no home folder is known")

// Paths are the four folders, all absolute. They need not exist.
type Paths struct {
	Config string // settings the user writes
	Data   string // threads, turns, queue, sources: worth a backup
	State  string // heat, drive profiles, snapshots: can be made again, slowly
	Cache  string // may be deleted at any time
}

// Default returns the folders for this process.
func Default() (Paths, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // still fine when the environment names the places
	}
	return For(runtime.GOOS, home, os.Getenv)
}

// For returns the folders for the operating system goos, a user's home folder
// and an environment. It is Default without the process around it. A variable
// that is not an absolute path is ignored, as the XDG specification demands,
// except HomeVar: a relative one is an error, because silently storing threads
// elsewhere than asked would lose them from sight.
func For(goos, home string, getenv func(string) string) (Paths, error) {
	// Names are built with the separator of goos, so that one platform's tests
	// can check the others.
	sep := "/"
	if goos == "windows" {
		sep = `\`
	}
	join := func(parts ...string) string { return strings.Join(parts, sep) }
	if root := getenv(HomeVar); root != "" {
		if !isAbs(goos, root) {
			return Paths{}, fmt.Errorf("%s is %q, which is not an absolute path: set it to one, or unset it", HomeVar, root)
		}
		root = strings.TrimRight(root, sep)
		return Paths{join(root, "config"), join(root, "data"), join(root, "state"), join(root, "cache")}, nil
	}
	pick := func(name, fallback string) string {
		if v := getenv(name); isAbs(goos, v) {
			return strings.TrimRight(v, sep)
		}
		if home == "" {
			return ""
		}
		return fallback
	}
	var p Paths
	switch goos {
	case "windows":
		roaming := pick("APPDATA", join(home, "AppData", "Roaming"))
		local := pick("LOCALAPPDATA", join(home, "AppData", "Local"))
		if roaming != "" && local != "" {
			// Threads stay on this machine: a roaming profile would copy a
			// database in use.
			p = Paths{join(roaming, app), join(local, app, "data"), join(local, app, "state"), join(local, app, "cache")}
		}
	case "darwin":
		if home != "" {
			support := join(home, "Library", "Application Support", app)
			p = Paths{join(support, "config"), join(support, "data"), join(support, "state"), join(home, "Library", "Caches", app)}
		}
	default:
		xdg := func(name string, fallback ...string) string {
			if base := pick(name, join(append([]string{home}, fallback...)...)); base != "" {
				return join(base, app)
			}
			return ""
		}
		p = Paths{
			Config: xdg("XDG_CONFIG_HOME", ".config"),
			Data:   xdg("XDG_DATA_HOME", ".local", "share"),
			State:  xdg("XDG_STATE_HOME", ".local", "state"),
			Cache:  xdg("XDG_CACHE_HOME", ".cache"),
		}
	}
	if p.Config == "" || p.Data == "" || p.State == "" || p.Cache == "" {
		return Paths{}, fmt.Errorf("%w: set %s to the folder where threads and settings belong", ErrNoHome, HomeVar)
	}
	return p, nil
}

// isAbs reports whether p is absolute on goos, whatever system this runs on.
func isAbs(goos, p string) bool {
	if goos != "windows" {
		return strings.HasPrefix(p, "/")
	}
	if goos == runtime.GOOS {
		return filepath.IsAbs(p)
	}
	drive := len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
	return drive || strings.HasPrefix(p, `\\`)
}
