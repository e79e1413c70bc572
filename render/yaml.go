package render

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/xds"
)

// YAML is block style with every string in double quotes, so that no word in it is taken for a
// boolean, a number or null.
var YAML = &Format{Name: "yaml", message: messageYAML, resource: resourceYAML, response: responseYAML, changes: changedByYAML}

func messageYAML(g *xds.Registry, m proto.Message) ([]byte, error) {
	raw, err := messageJSON(g, m)
	if err != nil {
		return nil, err
	}
	y := yamlWriter{in: jsontext.NewDecoder(bytes.NewReader(raw))}
	y.value(0, false)
	return bytes.TrimLeft(y.out, " \n"), y.err // as if behind a key
}

func resourceYAML(g *xds.Registry, m proto.Message, _ []byte) ([]byte, error) {
	typed, err := typedJSON(g, m)
	if err != nil {
		return nil, err
	}
	y := yamlWriter{in: jsontext.NewDecoder(bytes.NewReader(typed)), out: make([]byte, 0, 2*len(typed))}
	y.out = append(y.out, '-')
	y.value(1, true)
	return y.out, y.err
}

func responseYAML(version, typeURL string, resources [][]byte) ([]byte, error) {
	data := make([]byte, 0, sizeOf(resources))
	data = append(data, "version_info: \""+version+"\"\ntype_url: \""+typeURL+"\"\nresources:"...)
	if len(resources) == 0 {
		return append(data, " []\n"...), nil
	}
	data = append(data, '\n')
	for _, r := range resources {
		data = append(data, r...)
	}
	return data, nil
}

// yamlWriter turns JSON into YAML, token by token.
type yamlWriter struct {
	in  *jsontext.Decoder
	out []byte
	err error // the first error; protojson's JSON should cause none
}

func (y *yamlWriter) next() jsontext.Token {
	token, err := y.in.ReadToken()
	if y.err == nil {
		y.err = err
	}
	return token
}

// more reports whether the current object or list goes on, and otherwise reads its end.
func (y *yamlWriter) more(end jsontext.Kind) bool {
	if y.err == nil && y.in.PeekKind() != end {
		return true
	}
	y.next()
	return false
}

// value writes the next value behind a key or the hyphen of a list, up to the end
// of its last line. What has lines of its own is indented to depth; behind a
// hyphen the first of them goes on where the hyphen stands.
func (y *yamlWriter) value(depth int, hyphen bool) {
	start := func(first bool) {
		switch {
		case !first:
			y.indent(depth)
		case hyphen:
			y.out = append(y.out, ' ')
		default:
			y.out = append(y.out, '\n')
			y.indent(depth)
		}
	}
	switch token := y.next(); token.Kind() {
	case '{':
		first := true
		for ; y.more('}'); first = false {
			start(first)
			y.key(depth, y.next().String())
		}
		if first {
			y.out = append(y.out, " {}\n"...)
		}
	case '[':
		if !hyphen {
			depth-- // a hyphen makes room enough below a key
		}
		first := true
		for ; y.more(']'); first = false {
			start(first)
			y.out = append(y.out, '-')
			y.value(depth+1, true)
		}
		if first {
			y.out = append(y.out, " []\n"...)
		}
	case '"':
		y.out = append(y.out, ' ')
		y.quoted(token.String())
		y.out = append(y.out, '\n')
	default: // true, false, null or a number, in which the two agree
		y.out = append(y.out, ' ')
		y.out = append(y.out, token.String()...)
		y.out = append(y.out, '\n')
	}
}

// longestKey is how long a key may be for a parser to find its colon: YAML says
// 1024. Longer ones are announced by a question mark.
const longestKey = 1000

// key writes a member of an object.
func (y *yamlWriter) key(depth int, name string) {
	at := len(y.out)
	if plain(name) {
		y.out = append(y.out, name...)
	} else {
		y.quoted(name)
	}
	if long := len(y.out)-at > longestKey; long {
		y.out = append(y.out[:at], "? "+string(y.out[at:])+"\n"...)
		y.indent(depth)
	}
	y.out = append(y.out, ':')
	y.value(depth+1, false)
}

func (y *yamlWriter) indent(depth int) {
	for range depth {
		y.out = append(y.out, "  "...)
	}
}

// plain reports whether a key is a text to every parser without quotes.
func plain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	switch strings.ToLower(name) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

// quoted writes a text in double quotes, as JSON would. Escaped is also what YAML
// takes for a line break or does not allow.
func (y *yamlWriter) quoted(s string) {
	y.out = append(y.out, '"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			y.out = append(y.out, '\\', byte(r))
		case r == '\n':
			y.out = append(y.out, `\n`...)
		case r == '\t':
			y.out = append(y.out, `\t`...)
		case r == '\r':
			y.out = append(y.out, `\r`...)
		case r < ' ', 0x7f <= r && r <= 0x9f, r == '\u2028', r == '\u2029', r == '\ufeff', r == '\ufffe', r == '\uffff':
			y.out = fmt.Appendf(y.out, `\u%04x`, r)
		default:
			y.out = utf8.AppendRune(y.out, r)
		}
	}
	y.out = append(y.out, '"')
}

// changedByYAML finds the numbers that Envoy's YAML reader makes texts of. Of the
// numbers in a field with a type it makes numbers again; those in a Struct stay
// texts, with neither a word nor a counter. Whole ones of 32 bits stay numbers.
func changedByYAML(r *xds.Resource) diag.List {
	var list diag.List
	report := func(p xds.Path, n float64) {
		text := jsontext.Float(n).String()
		d := r.Diagnostic(codeNumberInYAML.Name, p, fmt.Sprintf("Envoy would read the number %s as the text %q from a YAML file", text, text))
		d.Help = "publish with --format json or --format pb; where the text is meant, put it in quotes"
		list = append(list, d)
	}
	r.Registry.Walk(r.Message(), func(n *xds.Node) {
		if inTypedStruct(n) {
			return // met already
		}
		switch m := n.Message.(type) {
		case *structpb.Struct:
			numbers(n.Path(), structpb.NewStructValue(m), report)
		case *structpb.ListValue:
			numbers(n.Path(), structpb.NewListValue(m), report)
		case *structpb.Value:
			numbers(n.Path(), m, report)
		// Publishing keeps these messages unchanged, although the walk continues in the message inside.
		case *xdstypev3.TypedStruct:
			numbers(n.Path().Field("value"), structpb.NewStructValue(m.GetValue()), report)
		case *udpatypev1.TypedStruct:
			numbers(n.Path().Field("value"), structpb.NewStructValue(m.GetValue()), report)
		}
	})
	return list
}

func inTypedStruct(n *xds.Node) bool {
	_, current := xds.Enclosing[*xdstypev3.TypedStruct](n)
	_, former := xds.Enclosing[*udpatypev1.TypedStruct](n)
	return current != nil || former != nil
}

// numbers reports those in v that YAML would not keep.
func numbers(p xds.Path, v *structpb.Value, report func(xds.Path, float64)) {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		n := kind.NumberValue
		if n != math.Trunc(n) || n < math.MinInt32 || n > math.MaxInt32 {
			report(p, n)
		}
	case *structpb.Value_ListValue:
		for i, v := range kind.ListValue.GetValues() {
			numbers(p.Index(i), v, report)
		}
	case *structpb.Value_StructValue:
		for name, v := range kind.StructValue.GetFields() { // in no order: findings are sorted
			numbers(p.Key(name), v, report)
		}
	}
}
