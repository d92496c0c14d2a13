package aterm

import "github.com/charmbracelet/lipgloss"

// The answer itself is of no account: nothing of ours uses adaptive colours.
func init() { lipgloss.SetHasDarkBackground(true) }
