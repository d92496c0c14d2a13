package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	"deltafin/session"
)

// greetTimeout is how long an owner may take to say hello or to answer: it
// answers at once, whatever the model does.
const greetTimeout = 5 * time.Second

// A Client speaks to the owner. Its methods may be called from any goroutine;
// one is served at a time. A client that follows does nothing else: make another
// for requests.
type Client struct {
	c     net.Conn
	hello Hello

	mu    sync.Mutex // guards below
	lines *lineReader
	last  uint64
}

// Dial connects to the owner of a folder. Without one the error is ErrNotRunning.
func Dial(ctx context.Context, dir string) (*Client, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || refused(err) {
			return nil, ErrNotRunning
		}
		return nil, fmt.Errorf("connecting to the running deltafin: %w", err)
	}
	cl, err := newClient(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return cl, nil
}

// newClient greets.
func newClient(c net.Conn) (*Client, error) {
	cl := &Client{c: c, lines: newLineReader(c)}
	var line []byte
	err := c.SetReadDeadline(time.Now().Add(greetTimeout)) // may find it closed already
	if err == nil {
		line, err = cl.lines.next()
	}
	if err != nil {
		return nil, fmt.Errorf("the running deltafin does not greet: %w", err)
	}
	if err := json.Unmarshal(line, &cl.hello); err != nil || cl.hello.Protocol == 0 {
		return nil, fmt.Errorf("%w: the greeting is %.80q", ErrProtocol, line)
	}
	if v := cl.hello.Protocol; v != Version {
		return nil, fmt.Errorf("the running deltafin (%s) speaks control protocol %d, this program %d: use the same version of both", cl.hello.Owner, v, Version)
	}
	return cl, nil
}

// Owner says who runs the engine.
func (c *Client) Owner() session.Owner { return c.hello.Owner }

// Close ends the conversation.
func (c *Client) Close() error { return c.c.Close() }

// A RefusedError is a request that the owner did not take.
type RefusedError struct {
	Do   Verb
	Text string // its words
}

// Error gives the owner's words.
func (e *RefusedError) Error() string { return e.Text }

// Do sends a request that changes something and waits until it was taken.
func (c *Client) Do(ctx context.Context, r Request) error {
	_, err := c.call(ctx, r)
	return err
}

// Status asks what the owner is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	a, err := c.call(ctx, Request{Do: GetStatus})
	if err != nil {
		return Status{}, err
	}
	if a.Status == nil {
		return Status{}, fmt.Errorf("%w: a status without one", ErrProtocol)
	}
	return *a.Status, nil
}

// Follow calls f with the status whenever it has changed, at most once per every.
// It ends with f's error, with nil when the owner says goodbye, or when ctx ends.
func (c *Client) Follow(ctx context.Context, every time.Duration, f func(Status) error) error {
	if _, err := c.call(ctx, Request{Do: Subscribe, Every: every.Seconds()}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.watch(ctx, time.Time{})()
	for {
		a, err := c.next()
		if err != nil {
			return c.cause(ctx, err)
		}
		switch {
		case a.Event == "bye":
			return nil
		case a.Event == "status" && a.Status != nil:
			if err := f(*a.Status); err != nil {
				return err
			}
		}
	}
}

func (c *Client) call(ctx context.Context, r Request) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	r.ID = c.last
	line, err := encode(r)
	if err != nil {
		return answer{}, err
	}
	defer c.watch(ctx, time.Now().Add(greetTimeout))()
	if _, err := c.c.Write(line); err != nil {
		return answer{}, c.cause(ctx, err)
	}
	for {
		a, err := c.next()
		switch {
		case err != nil:
			return a, c.cause(ctx, err)
		case a.Event != "":
			continue // of an older subscription
		case a.Error != "":
			return a, &RefusedError{r.Do, a.Error}
		case a.ID == r.ID:
			return a, nil
		}
	}
}

// watch sets the deadline of a call and ends it with ctx. The returned function
// ends the watch.
func (c *Client) watch(ctx context.Context, deadline time.Time) func() {
	_ = c.c.SetDeadline(deadline) // a connection that cannot have one fails at the next read
	stop := context.AfterFunc(ctx, func() { _ = c.c.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

func (c *Client) next() (a answer, err error) {
	line, err := c.lines.next()
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	return a, nil
}

// cause says why a conversation ended.
func (c *Client) cause(ctx context.Context, err error) error {
	var n net.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &n) && n.Timeout():
		return fmt.Errorf("the running deltafin (%s) does not answer: %w", c.hello.Owner, err)
	case errors.Is(err, io.EOF), errors.As(err, &n):
		return fmt.Errorf("%w: it (%s) has just ended", ErrNotRunning, c.hello.Owner)
	}
	return err
}
