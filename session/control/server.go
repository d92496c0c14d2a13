package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"deltafin/session"
)

// A Job is what a Server speaks for. Its methods are called from several
// goroutines and must return at once: hand work over, do not do it there.
type Job interface {
	// Status says what is going on; with sample, the figures for screens too.
	Status(sample bool) Status
	// Do takes a request that changes something. An error is told to the client,
	// so it says what happened and what to do.
	Do(ctx context.Context, r Request) error
}

const (
	// maxClients bounds the goroutines that clients can make the owner hold.
	maxClients = 32
	// writeTimeout is how long a client may take to accept one line.
	writeTimeout = 10 * time.Second
)

// A Server answers the clients of an owner.
type Server struct {
	l     net.Listener
	job   Job
	owner session.Owner

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // guards below
	clients map[net.Conn]bool
}

// newServer starts a server on a listener, which it then owns.
func newServer(l net.Listener, job Job, owner session.Owner) *Server {
	s := &Server{l: l, job: job, owner: owner, clients: map[net.Conn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s
}

// Close ends all conversations and waits for them. Clients that listen hear "bye".
func (s *Server) Close() error {
	s.cancel()
	err := s.l.Close()
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Clients is the number of connections.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

func (s *Server) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, or a client that hung up at once: neither ends the
			// service, and neither may make a loop without pause.
			select {
			case <-time.After(MinEvery):
				continue
			case <-s.ctx.Done():
				return
			}
		}
		s.mu.Lock()
		full := len(s.clients) >= maxClients
		if !full {
			s.clients[c] = true
		}
		s.mu.Unlock()
		if full {
			_ = c.Close() // nothing else can be done for it
			continue
		}
		s.wg.Go(func() { s.talk(c) })
	}
}

// talk is one conversation: this goroutine writes, one beside it reads. The
// reader waits while the writer cannot get its answers out, so that a client that
// does not listen is not listened to either.
func (s *Server) talk(c net.Conn) {
	ctx, cancel := context.WithCancel(s.ctx)
	p := &peer{s: s, c: c, out: make(chan answer), every: make(chan time.Duration, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel()
		p.read(ctx)
	})
	p.write(ctx)
	cancel()
	_ = c.Close() // ends the reader
	reading.Wait()
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// A peer is one client.
type peer struct {
	s     *Server
	c     net.Conn
	out   chan answer
	every chan time.Duration // of a subscription
}

// read takes requests until the client is gone or says something that is none.
func (p *peer) read(ctx context.Context) {
	lines := newLineReader(p.c)
	for {
		line, err := lines.next()
		if err != nil {
			if errors.Is(err, ErrProtocol) {
				p.send(ctx, answer{Error: err.Error()})
			}
			return
		}
		req, err := parseRequest(line)
		a := answer{ID: req.ID}
		if err == nil {
			err = p.handle(ctx, req, &a)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if !p.send(ctx, a) || errors.Is(err, ErrProtocol) {
			return
		}
	}
}

func (p *peer) handle(ctx context.Context, req Request, a *answer) error {
	switch req.Do {
	case GetStatus:
		st := p.s.job.Status(false)
		a.Status = &st
		return nil
	case Subscribe:
		every := max(time.Duration(req.Every*float64(time.Second)), MinEvery)
		select {
		case <-p.every: // a later subscription replaces one not yet seen
		default:
		}
		p.every <- every
		return nil
	}
	return p.s.job.Do(ctx, req)
}

func (p *peer) send(ctx context.Context, a answer) bool {
	select {
	case p.out <- a:
		return true
	case <-ctx.Done():
		return false
	}
}

// write sends the greeting, answers, and after a subscription the status whenever
// it has changed. It looks only when the client has taken everything before.
func (p *peer) write(ctx context.Context) {
	if p.put(Hello{Version, p.s.owner}) != nil {
		return
	}
	var tick <-chan time.Time
	var ticker *time.Ticker
	defer func() {
		if ticker != nil {
			ticker.Stop()
		}
	}()
	seen, first := uint64(0), true
	for {
		var err error
		select {
		case a := <-p.out:
			err = p.put(a)
		case every := <-p.every:
			if ticker != nil {
				ticker.Stop()
			}
			ticker = time.NewTicker(every)
			tick, first = ticker.C, true
		case <-tick:
			st := p.s.job.Status(true)
			if !first && st.Change == seen {
				continue
			}
			seen, first = st.Change, false
			err = p.put(answer{Event: "status", Status: &st})
		case <-ctx.Done():
			if p.s.ctx.Err() != nil {
				_ = p.put(answer{Event: "bye"}) // as a courtesy
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// put writes one line. A client that does not take it in time is given up.
func (p *peer) put(v any) error {
	line, err := encode(v)
	if err != nil {
		return err
	}
	if err := p.c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := p.c.Write(line); err != nil {
		return fmt.Errorf("control: writing to a client: %w", err)
	}
	return nil
}

var _ io.Closer = (*Server)(nil)
