package chat

import (
	"encoding/json"
	"strconv"
	"strings"
)

// callID invents the id of a call. The format has none; this form is accepted
// by other programs for K3 too.
func callID(name string, n int) string { return name + ":" + strconv.Itoa(n) }

// callText makes JSON text of the argument elements of one call while they
// arrive. Every method returns what it added to json, so that the additions
// joined are the whole.
//
// Values keep the text the model wrote, so that the call rendered again has the
// same tokens: a string is escaped and nothing else, any other value is taken
// over as it stands if it is valid JSON, and becomes a string if it is not.
type callText struct {
	json []byte
	raw  bool   // json is the text of a json element, and not built of arguments
	text bool   // the open argument is a string, written as it arrives
	body []byte // the open argument, of another type, kept until it is complete
}

func (c *callText) added(from int) string { return string(c.json[from:]) }

// openArgument begins an argument. Where a json element already gave the
// arguments as a whole, further ones are dropped.
func (c *callText) openArgument(key, kind string) string {
	if c.raw {
		return ""
	}
	n := len(c.json)
	if n == 0 {
		c.json = append(c.json, '{')
	} else {
		c.json = append(c.json, ',')
	}
	c.json = append(appendEscaped(append(c.json, '"'), key), `":`...)
	c.body = c.body[:0]
	switch kind {
	case "number", "boolean", "null", "object", "array":
		c.text = false
	default:
		c.text = true
		c.json = append(c.json, '"')
	}
	return c.added(n)
}

func (c *callText) addArgument(s string) string {
	switch {
	case c.raw:
		return ""
	case !c.text:
		c.body = append(c.body, s...)
		return ""
	}
	n := len(c.json)
	c.json = appendEscaped(c.json, s)
	return c.added(n)
}

func (c *callText) closeArgument() string {
	if c.raw {
		return ""
	}
	n := len(c.json)
	switch value := strings.Trim(string(c.body), jsonSpace); {
	case c.text:
		c.json = append(c.json, '"')
	case json.Valid([]byte(value)):
		c.json = append(c.json, value...)
	default:
		c.json = append(c.json, quote(string(c.body))...)
	}
	return c.added(n)
}

// addRaw adds text of a json element. After an argument it is dropped: the
// arguments cannot be both.
func (c *callText) addRaw(s string) string {
	if len(c.json) > 0 && !c.raw {
		return ""
	}
	c.raw = true
	n := len(c.json)
	c.json = append(c.json, s...)
	return c.added(n)
}

// finish ends the call.
func (c *callText) finish() string {
	n := len(c.json)
	switch {
	case c.raw:
	case n == 0:
		c.json = append(c.json, "{}"...)
	default:
		c.json = append(c.json, '}')
	}
	return c.added(n)
}
