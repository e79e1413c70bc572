package syntax

import (
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// FuzzUnquoted compares Unquoted with prototext.
func FuzzUnquoted(f *testing.F) {
	for _, seed := range []string{
		`"a"`, `'a' "b"`, "\"a\" # c\n'b'", `"\x41\101\u00e4\U0001F600\n\"\'\?"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\udc00\ud83d"`, `5`, `true`, ``, `"`, `"a`, `"\400"`, `"\xff"`, `"\x"`,
		`"\u12"`, `"\U00110000"`, "\"a\nb\"", `"\q"`, `"a"b`, "\"\x00\"", `"é"`, `"\1234"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tree := ParseText([]byte("value:" + text)); !utf8.ValidString(text) || !tree.Whole || len(tree.Children) != 1 || tree.Children[0].Message || tree.Children[0].List || tree.Children[0].End != len("value:")+len(text) {
			return // not a scalar that prototext reads
		}
		want := text
		var v wrapperspb.StringValue
		if prototext.Unmarshal([]byte("value:"+text), &v) == nil {
			want = v.GetValue()
		}
		if got := Unquoted([]byte(text)); got != want {
			t.Errorf("%q means %q, want %q", text, got, want)
		}
	})
}
