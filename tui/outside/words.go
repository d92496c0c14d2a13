package outside

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// ErrNoCommand: the words of a command name no program.
var ErrNoCommand = errors.New("no command is named")

// Words splits a command into the program and its arguments, as a shell does it
// with blanks, single and double quotes and the backslash. It fails with
// ErrNoCommand for nothing but blanks, and on a quote that is not closed.
func Words(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, quote := false, rune(0)
	rest := []rune(command)
	for i := 0; i < len(rest); i++ {
		r := rest[i]
		switch {
		case r == '\\' && quote != '\'' && runtime.GOOS != "windows" && i+1 < len(rest):
			// Within double quotes a backslash stands for itself before most letters.
			if next := rest[i+1]; quote == 0 || next == '"' || next == '\\' {
				i, r = i+1, next
			}
			word.WriteRune(r)
			begun = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true // "" is a word too
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				words, begun = append(words, word.String()), false
				word.Reset()
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%q has a %c that is not closed", command, quote)
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, ErrNoCommand
	}
	return words, nil
}

// Find is Words for a program that must be there: words[0] becomes its path. A
// command that is the path of a program as it stands, blanks and all, is taken so.
func Find(command string) ([]string, error) {
	if path, err := exec.LookPath(command); err == nil {
		return []string{path}, nil
	}
	words, err := Words(command)
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", words[0], err)
	}
	words[0] = path
	return words, nil
}
