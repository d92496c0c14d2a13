package main

import (
	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/session"
)

// summary is the JSON object that ask --json prints, and the last event of
// --jsonl. Its names are stable.
type summary struct {
	Model     modelSummary    `json:"model"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking,omitempty"`
	ToolCalls []toolCall      `json:"tool_calls,omitempty"`
	PromptIDs []int           `json:"prompt_token_ids"`
	Tokens    []int           `json:"token_ids"`
	Finish    engine.Finish   `json:"finish_reason"`
	Sampling  samplingSummary `json:"sampling"`
	Timings   timings         `json:"timings"`
	Counts    counts          `json:"counts"`
	Draft     *draftSummary   `json:"draft,omitempty"`  // with --draft auto
	Thread    *threadSummary  `json:"thread,omitempty"` // when the answer is kept
}

// threadSummary says where an answer is kept.
type threadSummary struct {
	ID     string         `json:"id"`
	Turn   string         `json:"turn"`
	Status session.Status `json:"status"`
	Stop   string         `json:"stop,omitempty"`
}

type modelSummary struct {
	Name        string `json:"name"`
	Dir         string `json:"dir,omitempty"`
	Fingerprint string `json:"fingerprint"`
	Kernel      string `json:"kernel"`
	Arithmetic  string `json:"arithmetic"`
	Trunk       string `json:"trunk,omitempty"` // what it is, where it is not exact
	Threads     int    `json:"threads"`
	Toy         bool   `json:"toy"`
	Notice      string `json:"notice,omitempty"`
}

type toolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type samplingSummary struct {
	Greedy      bool    `json:"greedy"`
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	Seed        uint64  `json:"seed"`
}

// timings are seconds and tokens per second.
type timings struct {
	Load      float64 `json:"load_s"`
	Prefill   float64 `json:"prefill_s"`
	Decode    float64 `json:"decode_s"`
	PrefillTS float64 `json:"prefill_tokens_per_s"`
	DecodeTS  float64 `json:"decode_tokens_per_s"`
}

type counts struct {
	Prompt    int `json:"prompt"`
	Reused    int `json:"reused"`
	Prefilled int `json:"prefilled"`
	Generated int `json:"generated"`
}

func modelOf(i engine.Info) modelSummary {
	return modelSummary{i.Name, i.Dir, i.Fingerprint, i.Kernel, i.Arithmetic, i.Trunk, i.Threads, i.Toy, i.Notice}
}

func (a *answer) summary(req engine.Request, res engine.Result) summary {
	out := summary{
		Model:     modelOf(a.e.Info()),
		PromptIDs: req.Tokens,
		Tokens:    res.Tokens,
		Finish:    res.Finish,
		Sampling:  samplingSummary{req.Sampling.Temperature == 0, req.Sampling.Temperature, req.Sampling.TopP, req.Sampling.Seed},
		Timings: timings{a.loaded.Seconds(), res.PrefillTime.Seconds(), res.DecodeTime.Seconds(),
			rate(res.Prefilled, res.PrefillTime), rate(len(res.Tokens)-1, res.DecodeTime)},
		Counts: counts{len(req.Tokens), res.Reused, res.Prefilled, len(res.Tokens)},
		Draft:  a.f.model.draft.of(a.e, a.began),
	}
	if out.Tokens == nil {
		out.Tokens = []int{}
	}
	if a.reply == nil {
		out.Text = a.text.String()
		return out
	}
	var r chat.Reply = a.reply.Reply()
	out.Text, out.Thinking = r.Response, r.Thinking
	for _, c := range r.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, toolCall{c.Name, c.Arguments})
	}
	return out
}
