package decode

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Envoy's parser takes more than protojson: enum names in any case of letters and numbers in
// quotes, booleans in quotes, {"value": 1} for a wrapper and {"seconds": 1} for a duration, one value
// for a list of it. A value that protojson refuses is therefore rewritten to what protojson takes. The
// finding is then a warning, in a source tree too: these spellings have one meaning. The rest of
// what Envoy takes is read only in a file that Envoy itself reads, because an author may mean
// something else by it: {} for a wrapper, null or a list in a list, the last of two equal names.
// agreement.TestValues tries each value on the real Envoy.

const readOnlyHelp = "Envoy accepts this, but it is not valid proto JSON"

// leniently makes warnings of what Envoy's parser takes nevertheless.
func leniently(list diag.List) diag.List {
	for i := range list {
		list[i].Severity = diag.Warning
		if help := list[i].Help; help != "" {
			list[i].Help = readOnlyHelp + "; " + help
		} else {
			list[i].Help = readOnlyHelp
		}
	}
	return list
}

// rewriter turns JSON that Envoy's parser reads into JSON that protojson reads alike.
// What neither reads stays as it is.
type rewriter struct {
	value value
	// asEnvoy reads values with several meanings, too, as Envoy does.
	asEnvoy bool
}

func (r rewriter) message(md protoreflect.MessageDescriptor, raw jsontext.Value, at xds.Path) jsontext.Value {
	isObject := raw.Kind() == '{'
	switch md.FullName() {
	case "google.protobuf.Struct", "google.protobuf.Value":
		return raw
	case "google.protobuf.ListValue", "google.protobuf.FieldMask":
		if isObject && len(syntax.EntriesOf(raw)) == 0 {
			return jsontext.Value(emptyOf(md)) // the message without fields
		}
		return raw
	case "google.protobuf.Timestamp":
		return timestamp(raw)
	case "google.protobuf.Any":
		return r.any(raw, at)
	case "google.protobuf.Duration":
		return duration(raw)
	}
	switch {
	case isWrapper(md):
		if isObject {
			switch inner := syntax.EntriesOf(raw); {
			case r.isUnset(inner):
				return jsontext.Value(emptyOf(md))
			case len(inner) == 1 && inner[0].Name == "value":
				raw = inner[0].Value
			}
		}
		return r.single(md.Fields().ByName("value"), raw, at)
	case isObject:
		return r.object(md, raw, at)
	}
	return raw
}

// isUnset reports whether Envoy's parser takes the members of a wrapper for the message without
// a value: a wrapper that is set, to false, 0 or the empty text. In a source tree its author may mean true.
func (r rewriter) isUnset(members []syntax.Entry) bool {
	if !r.asEnvoy {
		return false
	}
	return len(members) == 0 || len(members) == 1 && members[0].Name == "value" && members[0].Value.Kind() == 'n'
}

// isWrapper reports whether a message is written in JSON as its value.
func isWrapper(md protoreflect.MessageDescriptor) bool {
	return md.ParentFile().Path() == "google/protobuf/wrappers.proto"
}

func (r rewriter) any(raw jsontext.Value, at xds.Path) jsontext.Value {
	if raw.Kind() != '{' {
		return raw
	}
	members, _ := syntax.ObjectOf(raw)
	mt, err := r.value.doc.source.resolver().FindMessageByURL(urlIn(members))
	if err != nil {
		return raw
	}
	return r.object(mt.Descriptor(), raw, at)
}

func (r rewriter) object(md protoreflect.MessageDescriptor, raw jsontext.Value, at xds.Path) jsontext.Value {
	fieldOf := func(name string) protoreflect.FieldDescriptor {
		if fd := md.Fields().ByJSONName(name); fd != nil {
			return fd
		}
		return md.Fields().ByTextName(name)
	}
	var out []syntax.Entry
	for _, m := range syntax.EntriesOf(raw) {
		fd := fieldOf(m.Name)
		out = slices.DeleteFunc(out, func(earlier syntax.Entry) bool {
			return earlier.Name == m.Name || fd != nil && fieldOf(earlier.Name) == fd
		})
		switch {
		case m.Name == "value" && isSpecial(md): // in an Any
			m.Value = r.message(md, m.Value, at.Field("value"))
		case fd != nil && m.Value.Kind() != 'n':
			m.Value = r.field(fd, m.Value, at.Field(string(fd.Name())))
		}
		out = append(out, m)
	}
	return syntax.WriteObject(out)
}

func (r rewriter) field(fd protoreflect.FieldDescriptor, raw jsontext.Value, at xds.Path) jsontext.Value {
	switch {
	case fd.IsMap():
		if raw.Kind() != '{' {
			return raw
		}
		members := syntax.EntriesOf(raw)
		for i, m := range members {
			members[i].Value = r.element(fd.MapValue(), m.Value, at.Key(m.Name))
		}
		return syntax.WriteObject(members)
	case fd.IsList():
		items := []json.RawMessage{json.RawMessage(raw)} // one value stands for a list of it
		if raw.Kind() == '[' {
			items, _ = syntax.ListOf(raw)
		}
		out := []byte{'['}
		for i, item := range items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, r.element(fd, jsontext.Value(item), at.Index(i))...)
		}
		return append(out, ']')
	}
	return r.single(fd, raw, at)
}

// element is a value in a list or a map, where null stands for an empty one.
func (r rewriter) element(fd protoreflect.FieldDescriptor, raw jsontext.Value, at xds.Path) jsontext.Value {
	if raw.Kind() == 'n' {
		switch {
		case fd.Kind() == protoreflect.StringKind:
			return jsontext.Value(`""`)
		case fd.Kind() == protoreflect.MessageKind && fd.Message().FullName() != "google.protobuf.Value":
			return jsontext.Value(`{}`)
		}
	}
	return r.single(fd, raw, at)
}

func (r rewriter) single(fd protoreflect.FieldDescriptor, raw jsontext.Value, at xds.Path) jsontext.Value {
	if fd.Kind() == protoreflect.MessageKind {
		return r.message(fd.Message(), raw, at)
	}
	var text string
	if raw.Kind() == '"' && json.Unmarshal(raw, &text) != nil {
		return raw
	}
	switch kind := fd.Kind(); {
	case (kind == protoreflect.StringKind || kind == protoreflect.BytesKind) && raw.Kind() == '0':
		if bare, ok := r.bareText(at); ok {
			out, _ := json.Marshal(bare) // text: can be written
			return out
		}
		return raw
	case raw.Kind() != '"':
		return raw
	case kind == protoreflect.BoolKind:
		return boolean(text, raw)
	case kind == protoreflect.EnumKind:
		return enumValue(fd.Enum(), text, raw)
	case kind == protoreflect.BytesKind:
		return jsontext.Value(strings.NewReplacer("-", "+", "_", "/").Replace(string(raw)))
	case kind == protoreflect.FloatKind || kind == protoreflect.DoubleKind:
		return number(strings.TrimSpace(text), raw)
	case kind != protoreflect.StringKind:
		return number(text, raw)
	}
	return raw
}

// bareText is the text of a value that stands without quotes in a YAML file, where
// Envoy takes no more than a whole number of 32 bits for a number.
func (r rewriter) bareText(at xds.Path) (string, bool) {
	v := r.value
	if v.doc.source.Format != syntax.YAML {
		return "", false
	}
	n := v.doc.AsYAML().NodeAt(steps(v.path.Join(at)))
	if n == nil || n.Kind != yaml.ScalarNode {
		return "", false
	}
	return n.Value, syntax.IsText(n)
}

var ()

func boolean(text string, raw jsontext.Value) jsontext.Value {
	switch strings.ToLower(text) {
	case "true", "t", "yes", "y", "1":
		return jsontext.Value("true")
	case "false", "f", "no", "n", "0":
		return jsontext.Value("false")
	}
	return raw
}

func enumValue(ed protoreflect.EnumDescriptor, text string, raw jsontext.Value) jsontext.Value {
	for i := range ed.Values().Len() {
		if name := string(ed.Values().Get(i).Name()); strings.EqualFold(name, text) {
			return jsontext.Value(strconv.Quote(name))
		}
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		if value := ed.Values().ByNumber(protoreflect.EnumNumber(n)); value != nil {
			return jsontext.Value(strconv.Quote(string(value.Name())))
		}
		return jsontext.Value(strconv.FormatInt(n, 10))
	}
	return raw
}

// number is a number in quotes.
func number(text string, raw jsontext.Value) jsontext.Value {
	if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		if n, err := strconv.ParseUint(hex, 16, 53); err == nil {
			return jsontext.Value(strconv.FormatUint(n, 10))
		}
		return raw
	}
	digits := strings.TrimPrefix(text, "+")
	if whole := strings.TrimLeft(digits, "0"); whole != "" && whole[0] >= '1' && whole[0] <= '9' {
		digits = whole
	}
	if jsontext.Value(digits).Kind() == '0' && strings.TrimSpace(digits) == digits && jsontext.Value(digits).IsValid() {
		return jsontext.Value(digits)
	}
	return raw
}

// duration rewrites a duration that is written as an object, or with zeros in front.
func duration(raw jsontext.Value) jsontext.Value {
	switch raw.Kind() {
	case '{':
		d, ok := parts(raw)
		if !ok || d.CheckValid() != nil {
			return raw
		}
		text, err := protojson.Marshal(&durationpb.Duration{Seconds: d.GetSeconds(), Nanos: d.GetNanos()})
		if err != nil {
			return raw
		}
		return text
	case '"':
		if m := zerosInFront.FindSubmatch(raw); m != nil {
			return slices.Concat(m[1], m[2])
		}
	}
	return raw
}

// timestamp rewrites a timestamp that is written as an object.
func timestamp(raw jsontext.Value) jsontext.Value {
	if raw.Kind() != '{' {
		return raw
	}
	d, ok := parts(raw)
	if !ok {
		return raw
	}
	text, err := protojson.Marshal(&timestamppb.Timestamp{Seconds: d.GetSeconds(), Nanos: d.GetNanos()})
	if err != nil {
		return raw
	}
	return text
}

// parts returns the fields of a duration or a timestamp that is written as an object.
func parts(raw jsontext.Value) (*durationpb.Duration, bool) {
	var d durationpb.Duration
	for _, m := range syntax.EntriesOf(raw) {
		text := string(m.Value)
		if m.Value.Kind() == '"' {
			text = syntax.Unquote(m.Value)
		}
		if m.Value.Kind() == 'n' {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if whole := int64(n); err != nil || float64(whole) != n {
			return nil, false
		} else if m.Name == "seconds" {
			d.Seconds = whole
		} else if m.Name == "nanos" && int64(int32(whole)) == whole {
			d.Nanos = int32(whole)
		} else {
			return nil, false
		}
	}
	return &d, true
}

var zerosInFront = regexp.MustCompile(`^("-?)0+([0-9].*)$`)
