package tui_test

import (
	"fmt"
	"strings"
	"testing"

	"deltafin/tui"
)

// TestLeaderMenu: the menu behind Ctrl+X names every key whole at 40 cells and more,
// and goes away with the next key.
func TestLeaderMenu(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {120, 40}} {
		for _, state := range []string{"idle", "decoding"} {
			s := open(t, state, size[0], size[1])
			rest := s.m.View()
			s.press("ctrl+x")
			s.send(tui.LeadForTest)
			v := s.m.View()
			name := fmt.Sprintf("menu-%s-%dx%d", state, size[0], size[1])
			checkFrame(t, name, v, size[0], size[1])
			golden(t, name, v)
			for _, k := range tui.Keys() {
				_, lead, ok := strings.Cut(k.Keys, "ctrl+x ")
				if ok && k.When == "" && !strings.Contains(v, " "+lead+" "+k.Name) {
					t.Errorf("%s: %s %s is not in the menu:\n%s", name, lead, k.Name, v)
				}
			}
			s.press("esc")
			if got := s.m.View(); got != rest {
				t.Errorf("%s: esc leaves:\n%s", name, got)
			}
		}
	}
}
