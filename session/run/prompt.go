package run

import (
	"fmt"
	"slices"

	"deltafin/engine/chat"
	"deltafin/session"
)

// A prompt is a path of turns as token ids.
type prompt struct {
	ids     []int
	systems []mark // ends of the system turns: where other threads may part
	fresh   []mark // turns that were rendered just now, with their ids
	closing []int  // what the last answer lacks to be complete, before another turn may follow
	answers int    // turns of the assistant
}

// A mark is a place in a prompt.
type mark struct {
	turn session.ID
	end  int   // ids up to there
	ids  []int // of a fresh turn alone
}

// encode renders a piece of a conversation.
func (r *Runner) encode(p chat.Prompt) ([]int, error) { return r.e.Prompt(&p) }

// head is what stands before the first turn. It belongs to the answer to be
// made: the format has it once, at the top.
func (r *Runner) head(set session.Settings) ([]int, error) {
	e, thinking, err := effort(set)
	if err != nil {
		return nil, err
	}
	return r.encode(chat.Prompt{Thinking: thinking, Effort: e})
}

// opening begins the assistant's turn.
func (r *Runner) opening(set session.Settings) ([]int, error) {
	_, thinking, err := effort(set)
	if err != nil {
		return nil, err
	}
	return r.encode(chat.Prompt{Thinking: thinking, Generate: true})
}

// message renders a turn that is no answer.
func (r *Runner) message(role session.Role, text string) ([]int, error) {
	m := chat.Message{Content: text}
	switch role {
	case session.System:
		m.Role = chat.System
	case session.User:
		m.Role = chat.User
	default:
		return nil, fmt.Errorf("a turn of role %q has no tokens: it can only be rendered beside the call it answers", role)
	}
	return r.encode(chat.Prompt{Messages: []chat.Message{m}})
}

// render gives the ids of a path for an answer with the given settings. Ids that
// are stored are taken as they are. Where an answer of the path was made with
// other weights, ids count only if they mean the same text here.
func (r *Runner) render(path []session.Turn, set session.Settings) (*prompt, error) {
	p := &prompt{}
	var err error
	if p.ids, err = r.head(set); err != nil {
		return nil, err
	}
	foreign := slices.ContainsFunc(path, func(t session.Turn) bool {
		return t.Role == session.Assistant && t.Settings.Fingerprint != r.info.Fingerprint
	})
	for i := range path {
		t := &path[i]
		if t.Body == nil {
			return nil, fmt.Errorf("turn %s (%s): %w: fork before it to go on", t.ID.Short(), t.Role, session.ErrCorrupt)
		}
		if t.Role == session.Assistant {
			err = r.renderAnswer(p, t, foreign)
		} else {
			err = r.renderTurn(p, t, foreign)
		}
		if err != nil {
			return nil, fmt.Errorf("turn %s: %w", t.ID.Short(), err)
		}
	}
	return p, nil
}

func (r *Runner) renderTurn(p *prompt, t *session.Turn, foreign bool) error {
	stored := ints(t.Body.IDs())
	if len(stored) == 0 || foreign {
		m, err := r.message(t.Role, t.Body.Text)
		if err != nil {
			return err
		}
		m = append(slices.Clone(p.closing), m...)
		if len(stored) == 0 {
			p.fresh = append(p.fresh, mark{turn: t.ID, ids: m})
		}
		stored = m
	}
	p.ids = append(p.ids, stored...)
	p.closing = nil
	if t.Role == session.System {
		p.systems = append(p.systems, mark{turn: t.ID, end: len(p.ids)})
	}
	return nil
}

func (r *Runner) renderAnswer(p *prompt, t *session.Turn, foreign bool) error {
	p.answers++
	if len(t.Body.Tokens) == 0 {
		return nil // it ended before its first word: the model never said anything
	}
	if foreign && !r.understands(t) {
		_, thinking, err := effort(t.Settings)
		if err != nil {
			return err
		}
		ids, err := r.encode(chat.Prompt{Thinking: thinking, Messages: []chat.Message{
			{Role: chat.Assistant, Reasoning: t.Body.Reasoning, Content: t.Body.Text}}})
		p.ids = append(p.ids, ids...)
		p.closing = nil
		return err
	}
	open, err := r.opening(t.Settings)
	if err != nil {
		return err
	}
	ids := ints(t.Body.IDs())
	p.ids = append(append(p.ids, open...), ids...)
	p.closing, err = r.closing(ids, t.Settings)
	return err
}

// understands reports whether the ids of an answer mean its text to this model.
func (r *Runner) understands(t *session.Turn) bool {
	_, thinking, err := effort(t.Settings)
	if err != nil {
		return false
	}
	rd := newReader(r.e, thinking)
	var b session.Body
	for _, id := range t.Body.IDs() {
		if int(id) >= r.info.Config.Vocab {
			return false
		}
		tok, err := rd.token(int(id))
		if err != nil {
			return false
		}
		switch tok.Channel {
		case session.InAnswer:
			b.Text += tok.Text
		case session.InThinking:
			b.Reasoning += tok.Text
		}
	}
	return b.Text == t.Body.Text && b.Reasoning == t.Body.Reasoning
}

func ints(ids []int32) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

func int32s(ids []int) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}
