package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

var seeds = []string{
	`{"id":1,"do":"status"}`, `{"id":2,"do":"ask","text":"why","thread":"00000000000000ff"}`,
	`{"id":3,"do":"subscribe","every_s":0.25}`, `{"id":4,"do":"pause"}` + "\n" + `{"id":5,"do":"resume"}`,
	`{"do":"ask","text":""}`, `{"id":-1,"do":"status"}`, `{"id":1,"do":"subscribe","every_s":1e308}`,
	`{"thread":"zz","do":"ask","text":"x"}`, "", "\n\n", "{", "null", "[]", "\x00\xff", `{"do":"statu` + "\u2028" + `s"}`,
}

// FuzzRequest: whatever a line holds, it is a request that can be written and read
// again as the same, or an error.
func FuzzRequest(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		if err != nil {
			return
		}
		if _, ok := known[r.Do]; !ok || r.Every < 0 {
			t.Fatalf("accepted %+v", r)
		}
		again, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := parseRequest(again); err != nil || r2 != r {
			t.Fatalf("%+v became %+v, %v", r, r2, err)
		}
	})
}

// FuzzConversation: a server that hears anything answers in lines of JSON, obeys
// only what parses, and ends when it is told to.
func FuzzConversation(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		job := &fakeJob{}
		l, s := piped(job)
		c := l.dial(t)
		go func() {
			_, _ = c.Write(append(said, '\n')) // the server may hang up in the middle
			_, _ = io.WriteString(c, `{"id":424242,"do":"stop"}`+"\n")
		}()
		lines := newLineReader(c)
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.next()
			if err != nil {
				var late net.Error
				if errors.As(err, &late) && late.Timeout() {
					t.Fatal("the server neither answered nor hung up")
				}
				break
			}
			if !json.Valid(line) {
				t.Fatalf("said %q", line)
			}
			if bytes.Contains(line, []byte("424242")) {
				break
			}
		}
		c.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range job.got {
			if _, ok := known[r.Do]; !ok {
				t.Fatalf("the job got %+v", r)
			}
		}
	})
}
