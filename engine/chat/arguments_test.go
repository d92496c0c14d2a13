package chat

import (
	"slices"
	"testing"
)

func TestArgumentsOfAText(t *testing.T) {
	for _, c := range []struct {
		text string
		want []argument // nil: rendered raw
	}{
		{``, []argument{}},
		{`{}`, []argument{}},
		{" {\n} ", []argument{}},
		{`{"n":1e2}`, []argument{{"n", "number", "1e2"}}},
		{`{"a":[1,2]}`, []argument{{"a", "array", "[1,2]"}}},
		{"{ \"a\" :\t[1,  {\"b\": \"}]\"}] , \"c\":{ } }", []argument{{"a", "array", `[1,  {"b": "}]"}]`}, {"c", "object", "{ }"}}},
		{`{"t":true,"f":false,"n":null,"m":-0.0}`, []argument{{"t", "boolean", "true"}, {"f", "boolean", "false"}, {"n", "null", "null"}, {"m", "number", "-0.0"}}},
		{`{"k":1,"k":"2","k":1}`, []argument{{"k", "number", "1"}, {"k", "string", "2"}, {"k", "number", "1"}}},
		{`{"s":"a\n\"\\\u00e9😀<|open|>"}`, []argument{{"s", "string", "a\n\"\\é😀<|open|>"}}},
		{`{"a\"b":""}`, []argument{{`a"b`, "string", ""}}},
		{`{"a":1} and more`, []argument{{"a", "number", "1"}}},
		{`{"a":1}}`, []argument{{"a", "number", "1"}}},
		{`not valid <|open|>`, nil},
		{`   `, nil},
		{`null`, nil},
		{`[1]`, nil},
		{`"a"`, nil},
		{`{`, nil},
		{`{"a"`, nil},
		{`{"a":`, nil},
		{`{"a":}`, nil},
		{`{"a":1,}`, nil},
		{`{"a":1 "b":2}`, nil},
		{`{"a":01}`, nil},
		{`{"a":[1}`, nil},
		{`{a:1}`, nil},
		{`{1:1}`, nil},
		{`{"a":"x}`, nil},
		{"{\"a\":\"\n\"}", nil},
		{"{\u00a0\"a\":1}", nil},
	} {
		got, ok, err := arguments(&ToolCall{Arguments: c.text})
		if err != nil || ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v, %v; want %q", c.text, got, ok, err, c.want)
		}
	}
}

func TestArgumentsOfAnObject(t *testing.T) {
	got, ok, err := arguments(&ToolCall{Object: true, Arguments: `{"z":[1,{"b":"é","a":1e2}],"a":"x\ny","n":1.0,"z":{"q":[ ]},"t":true,"u":null}`})
	want := []argument{
		{"z", "object", `{"q": []}`}, {"a", "string", "x\ny"}, {"n", "number", "1.0"}, {"t", "boolean", "true"}, {"u", "null", "null"},
	}
	if err != nil || !ok || !slices.Equal(got, want) {
		t.Errorf("%q, %v, %v; want %q", got, ok, err, want)
	}
	got, _, err = arguments(&ToolCall{Object: true, Arguments: `{"z":[1,{"b":"é","a":1e2}]}`})
	want = []argument{{"z", "array", `[1, {"b": "é", "a": 100.0}]`}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, bad := range []string{"", "{", "[]", `{"a":1} x`} {
		if _, _, err := arguments(&ToolCall{Object: true, Arguments: bad}); err == nil {
			t.Errorf("object %q is accepted", bad)
		}
	}
}

func TestRawArgumentsAreOneElement(t *testing.T) {
	got := rendered(t, &Prompt{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{
		{Name: "f", Arguments: "oops"}, {Name: `g"`}, {Name: "h", Arguments: `{"k&":""}`},
	}}}})
	want := turn + response("") + "<|open|>tools<|sep|>" +
		`<|open|>call tool="f" index="1"<|sep|><|open|>json type="object"<|sep|>oops<|close|>json<|sep|><|close|>call<|sep|>` +
		`<|open|>call tool="g&quot;" index="2"<|sep|><|close|>call<|sep|>` +
		`<|open|>call tool="h" index="3"<|sep|><|open|>argument key="k&amp;" type="string"<|sep|><|close|>argument<|sep|><|close|>call<|sep|>` +
		"<|close|>tools<|sep|>" + eom
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestNumbersLikePython: the right column is what Python's json.dumps prints
// for json.loads of the left one.
func TestNumbersLikePython(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "12345678901234567890123": "12345678901234567890123",
		"1.0": "1.0", "1.50": "1.5", "-0.0": "-0.0", "1e2": "100.0", "1E+2": "100.0",
		"1e15": "1000000000000000.0", "1e16": "1e+16", "123456789012345678.0": "1.2345678901234568e+17",
		"0.0001": "0.0001", "0.00001": "1e-05", "1.5e-7": "1.5e-07", "1e100": "1e+100", "1e-400": "0.0",
	} {
		if got, err := number(in); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", in, got, err, want)
		}
	}
}

func TestSortedJSON(t *testing.T) {
	v, err := decode([]byte(`{"b":{"\u00e9":1,"z":[ ]},"a":"\u0001\t\u2028<&>\u007f\/","B":{},"😀":0,"￿":1}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encodeJSON(v, sortedCompact)
	want := "{\"B\":{},\"a\":\"\\u0001\\t\u2028<&>\x7f/\",\"b\":{\"z\":[],\"é\":1},\"￿\":1,\"😀\":0}"
	if err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func FuzzTextArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":"x","a":[{}]} `, `{"a":1,}`, `nope`, `{"\ud800":"\u0000"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args, ok := textArguments(text)
		if !ok {
			return
		}
		// What was taken apart and put together again is the same.
		var c callText
		for _, a := range args {
			c.openArgument(a.key, a.kind)
			c.addArgument(a.body)
			c.closeArgument()
		}
		c.finish()
		again, ok := textArguments(string(c.json))
		if !ok || !slices.Equal(again, args) {
			t.Fatalf("%q gives %q, by way of %q %q", text, args, c.json, again)
		}
	})
}
