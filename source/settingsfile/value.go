package settingsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"xdspub/diag"
	"xdspub/source/syntax"
)

// Kind is the kind of a Value.
type Kind uint8

// The kinds of a Value.
const (
	Text    Kind = iota // Text: a text, a number or a boolean
	List                // Parts are the elements
	Mapping             // Parts are the values behind the keys, in the order of the file
)

// Value is the value of a key in a settings file, or an element of a list.
type Value struct {
	Kind  Kind
	Key   string // in a mapping; empty in a list
	Text  string
	Parts []Value
	// Position is the position of the key; in a list, the position of the value.
	Position diag.Position
}

// Texts returns the text of v, or the texts of a list of texts. ok is false for other values.
func (v Value) Texts() (texts []string, ok bool) {
	switch v.Kind {
	case Text:
		return []string{v.Text}, true
	case Mapping:
		return nil, false
	}
	for _, p := range v.Parts {
		if p.Kind != Text {
			return nil, false
		}
		texts = append(texts, p.Text)
	}
	return texts, true
}

// maxSettingDepth is the largest nesting depth of values, above the depth of any setting.
const maxSettingDepth = 8

// ErrForm describes the usual form of a setting's value.
var ErrForm = errors.New("a setting has a text, a number or a boolean, or a list of these")

// settingValue reads the value at a path. With an error, settingValue returns the part with the fault.
func settingValue(doc *syntax.Document, raw json.RawMessage, path []string) (v Value, err error) {
	v.Position = doc.RangeOf(path, false).Position
	if len(path) > maxSettingDepth {
		return v, ErrForm
	}
	if members, ok := syntax.ObjectOf(raw); ok && members != nil && !syntax.IsNullText(raw) {
		v.Kind = Mapping
		for name, part := range members {
			p, err := settingValue(doc, part, append(slices.Clip(path), name))
			if err != nil {
				return p, err
			}
			p.Key, p.Position = name, doc.RangeOf(append(slices.Clip(path), name), true).Position
			v.Parts = append(v.Parts, p)
		}
		slices.SortFunc(v.Parts, func(a, b Value) int { return a.Position.Compare(b.Position) })
		return v, nil
	}
	if items, ok := syntax.ListOf(raw); ok && !syntax.IsNullText(raw) {
		v.Kind = List
		for i, item := range items {
			p, err := settingValue(doc, item, append(slices.Clip(path), fmt.Sprint(i)))
			if err != nil {
				return p, err
			}
			v.Parts = append(v.Parts, p)
		}
		return v, nil
	}
	v.Text, err = settingText(raw)
	return v, err
}

func settingText(raw json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a float64 would print 1000000 as 1e+06
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", err
	}
	switch v.(type) {
	case string, bool, json.Number:
		return fmt.Sprint(v), nil
	}
	return "", ErrForm
}
