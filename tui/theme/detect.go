package theme

import "strings"

// Detected is what the environment says about the terminal.
type Detected struct {
	// Name is the theme to use.
	Name    string
	Profile Profile
	// Glyphs is the set to draw with.
	Glyphs *Glyphs
	// Dumb says that the terminal cannot move its cursor: only plain output is
	// of use there.
	Dumb bool
}

// Detect reads the environment through get (os.Getenv, or a table in tests) for
// a system (runtime.GOOS). It asks the terminal itself nothing. The user's choice
// goes over its Name; NO_COLOR (set and not empty, no-color.org) means no colours
// whatever the choice.
func Detect(get func(string) string, goos string) Detected {
	term := get("TERM")
	d := Detected{Name: Dark, Glyphs: Braille()}
	switch {
	case term == "dumb" || term == "" && goos != "windows":
		d.Dumb = true
	case get("COLORTERM") == "truecolor" || get("COLORTERM") == "24bit" || strings.Contains(term, "direct"):
		d.Profile = TrueColour
	case goos == "windows":
		// The console of Windows 10 and later has all colours.
		d.Profile = TrueColour
	case strings.Contains(term, "256color") || strings.HasPrefix(term, "xterm-") || term == "alacritty":
		d.Profile = Colour256
	case strings.HasPrefix(term, "vt"):
	default:
		d.Profile = Colour16
	}
	if get("NO_COLOR") != "" {
		d.Profile = NoColour
	}
	if d.Profile == NoColour {
		d.Name = Mono
	} else if bright(get("COLORFGBG")) {
		d.Name = Light
	}
	switch {
	case d.Dumb || goos != "windows" && !utf8Locale(get):
		d.Glyphs = ASCII()
	case term == "linux" || goos == "windows" && get("WT_SESSION") == "":
		d.Glyphs = Block()
	}
	return d
}

// bright reads COLORFGBG ("15;0", "0;default;15"): the last number is the
// background among 16 colours.
func bright(v string) bool {
	switch v[strings.LastIndexByte(v, ';')+1:] {
	case "7", "9", "10", "11", "12", "13", "14", "15":
		return v != ""
	}
	return false
}

// utf8Locale asks the three variables of POSIX in their order: the first that is
// set decides.
func utf8Locale(get func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(get(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
