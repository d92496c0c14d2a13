package chat

import "fmt"

// A Vocabulary is what FindMarkers needs of a tokenizer.
type Vocabulary interface {
	// Special returns the id of a special name.
	Special(name string) (id int, ok bool)
	// Base is the first special id.
	Base() int
}

// Markers are the ids that give a reply its structure.
type Markers struct {
	Open, Close, Sep int // <|open|>, <|close|>, <|sep|>
	EndOfMsg         int // <|end_of_msg|>, the id to stop at

	// Stop are further ids that end a message. K3 does not write them; they are
	// [EOS] and [EOT].
	Stop []int

	// Base is the first special id. The text of a special id is its name and is
	// never part of a reply.
	Base int
}

// FindMarkers looks the markers up by name. One that is missing is an error: the
// tokenizer's names are not those of a K3 chat model.
func FindMarkers(v Vocabulary) (Markers, error) {
	m := Markers{Base: v.Base()}
	for _, want := range []struct {
		name string
		id   *int
	}{
		{markOpen, &m.Open}, {markClose, &m.Close}, {markSep, &m.Sep}, {markEndOfMsg, &m.EndOfMsg},
	} {
		id, ok := v.Special(want.name)
		if !ok {
			return Markers{}, fmt.Errorf("the tokenizer has no special id %q: its names are not those of a K3 chat model", want.name)
		}
		*want.id = id
	}
	for _, name := range []string{"[EOS]", "[EOT]"} {
		if id, ok := v.Special(name); ok {
			m.Stop = append(m.Stop, id)
		}
	}
	return m, nil
}
