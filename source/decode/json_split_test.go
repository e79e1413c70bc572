package decode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"xdspub/source/syntax"
)

// FuzzSplitJSON compares objectOf and listOf with encoding/json, for texts that the decoder reads.
func FuzzSplitJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` null `, `1`, `"{\"a\":1}"`, "\n[ ]\t", " { } ",
		`{"a":1,"b":[1,2,{"c":"]}"}],"c":{}}`, `{ "a" : "x\\" , "b\"" : "\\\"," }`, `{"\u0040type":"t","@type":"u"}`,
		`[1,-2.5e3,true,null,"a,b]","\\",[],{},[[[]]],{"a":[{}]}]`, "[ 1 ,\r\n\"é\" , [ ] ]", `{"a":null,"":0,"a\\":"\\"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !jsontext.Value(text).IsValid() {
			return // the decoder rejects such a text
		}
		var members map[string]json.RawMessage
		err := json.Unmarshal([]byte(text), &members)
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		got, ok := syntax.ObjectOf([]byte(text))
		if ok != (err == nil) || !cmp.Equal(got, members) {
			t.Errorf("objectOf(%s) = %q, %t; want %q, %t", text, got, ok, members, err == nil)
		}
		var items []json.RawMessage
		err = json.Unmarshal([]byte(text), &items)
		if list, ok := syntax.ListOf([]byte(text)); ok != (err == nil) || !cmp.Equal(list, items) {
			t.Errorf("listOf(%s) = %q, %t; want %q, %t", text, list, ok, items, err == nil)
		}
	})
}

// TestSplitType checks that cutting out an @type that is the first, the last, the only or another key leaves
// JSON whose keys are at their old places.
func TestSplitType(t *testing.T) {
	for text, want := range map[string]string{
		`{"@type":"t","a":1}`:                 `{            "a":1}`,
		`{ "@type" : "t" , "a":1}`:            `{                 "a":1}`,
		`{"a":1,"@type":"t"}`:                 `{"a":1            }`,
		`{"a":1 ,"@type":"t", "b":{}}`:        `{"a":1             , "b":{}}`,
		`{"@type":"t"}`:                       `{           }`,
		"{\n\"\\u0040type\":\n\"t\",\"a\":1}": "{\n" + strings.Repeat(" ", 13) + "\n    \"a\":1}",
	} {
		url, rest, err := splitType([]byte(text))
		if err != nil || url != "t" || string(rest) != want || !json.Valid(rest) {
			t.Errorf("splitType(%s) = %q, %s, %v; want t, %s", text, url, rest, err, want)
		}
	}
	for _, text := range []string{`[]`, `{}`, `{"@type":1}`, `{"@type":""}`, `{"@type":null}`, `1`} {
		if url, _, err := splitType([]byte(text)); err == nil {
			t.Errorf("splitType(%s) = %q; want an error", text, url)
		}
	}
}
