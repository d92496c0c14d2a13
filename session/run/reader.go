package run

import (
	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/session"
)

// A reader gives every generated id the text that it completed.
type reader struct{ reply *engine.Reply }

func newReader(e *engine.Engine, thinking bool) *reader { return &reader{e.NewReply(thinking)} }

// token reads the next id. Its text belongs to one channel. In an irregular
// reply that declares thinking to have been the answer, the token that says so
// carries that text over; the thinking keeps it too, since it was journalled so.
func (r *reader) token(id int) (session.Token, error) {
	events, err := r.reply.Add(id)
	if err != nil {
		return session.Token{}, err
	}
	t := session.Token{ID: int32(id)}
	for _, ev := range events {
		switch ev.Kind {
		case chat.ResponseDelta, chat.Relabel:
			if t.Channel != session.InAnswer {
				t.Channel, t.Text = session.InAnswer, ""
			}
			t.Text += ev.Text
		case chat.ThinkDelta:
			if t.Channel != session.InAnswer {
				t.Channel = session.InThinking
				t.Text += ev.Text
			}
		}
	}
	return t, nil
}
