package paths

import (
	"errors"
	"runtime"
	"testing"
)

func TestFor(t *testing.T) {
	cases := []struct {
		name, goos, home string
		env              map[string]string
		want             Paths
	}{
		{"linux plain", "linux", "/home/ada", nil, Paths{
			"/home/ada/.config/deltafin", "/home/ada/.local/share/deltafin",
			"/home/ada/.local/state/deltafin", "/home/ada/.cache/deltafin",
		}},
		{"linux xdg, relative one ignored", "linux", "/home/ada", map[string]string{
			"XDG_DATA_HOME": "/big/share/", "XDG_STATE_HOME": "state",
		}, Paths{
			"/home/ada/.config/deltafin", "/big/share/deltafin",
			"/home/ada/.local/state/deltafin", "/home/ada/.cache/deltafin",
		}},
		{"linux without a home but with all variables", "linux", "", map[string]string{
			"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k",
		}, Paths{"/c/deltafin", "/d/deltafin", "/s/deltafin", "/k/deltafin"}},
		{"macos", "darwin", "/Users/ada", map[string]string{"XDG_DATA_HOME": "/elsewhere"}, Paths{
			"/Users/ada/Library/Application Support/deltafin/config",
			"/Users/ada/Library/Application Support/deltafin/data",
			"/Users/ada/Library/Application Support/deltafin/state",
			"/Users/ada/Library/Caches/deltafin",
		}},
		{"windows", "windows", `C:\Users\ada`, map[string]string{"LOCALAPPDATA": `D:\Local`}, Paths{
			`C:\Users\ada\AppData\Roaming\deltafin`, `D:\Local\deltafin\data`,
			`D:\Local\deltafin\state`, `D:\Local\deltafin\cache`,
		}},
		{"one place for all", "linux", "", map[string]string{HomeVar: "/mnt/stick/"}, Paths{
			"/mnt/stick/config", "/mnt/stick/data", "/mnt/stick/state", "/mnt/stick/cache",
		}},
	}
	for _, c := range cases {
		got, err := For(c.goos, c.home, func(k string) string { return c.env[k] })
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

func TestForRefuses(t *testing.T) {
	none := func(string) string { return "" }
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if _, err := For(goos, "", none); !errors.Is(err, ErrNoHome) {
			t.Errorf("%s without a home: %v, want ErrNoHome", goos, err)
		}
	}
	relative := func(k string) string { return map[string]string{HomeVar: "here"}[k] }
	if p, err := For("linux", "/home/ada", relative); err == nil {
		t.Errorf("a relative %s gave %+v, want an error", HomeVar, p)
	}
}

func TestDefaultFollowsTheEnvironment(t *testing.T) {
	root := t.TempDir()
	t.Setenv(HomeVar, root)
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	want, err := For(runtime.GOOS, "", func(string) string { return root })
	if err != nil || p != want {
		t.Errorf("Default() = %+v, want %+v (%v)", p, want, err)
	}
}
