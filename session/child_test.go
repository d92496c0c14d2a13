package session

import (
	"context"
	"fmt"
)

func background() context.Context { return context.Background() }

// child plays a role in a process of its own.
func child(role string, args []string) error {
	switch role {
	case "killed":
		id, err := parseID(args[1])
		if err != nil {
			return err
		}
		return killed(args[0], id, args[2])
	case "holder":
		return holder(args[0], args[1])
	case "small disk":
		return smallDisk(args[0])
	}
	return fmt.Errorf("no role %q", role)
}

func parseID(s string) (id ID, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}
