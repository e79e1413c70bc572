package decode

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// spot is what the API says of a path: the field there, and the messages around it.
type spot struct {
	// around are the messages from the outside in; the last one has the field.
	around []protoreflect.MessageDescriptor
	// field is nil if the message has no field of the name.
	field protoreflect.FieldDescriptor
}

// spotAt follows a path of m, which is written as text, as far as types are known.
func spotAt(r resolver, text []byte, m proto.Message, tokens []string) spot {
	node := syntax.ParseJSON(text)
	md := m.ProtoReflect().Descriptor()
	var s spot
	for i := 0; i < len(tokens) && md != nil; i++ {
		if md.FullName() == "google.protobuf.Any" {
			if md = payloadType(r, text, node); md == nil {
				return spot{}
			}
		}
		s = spot{append(s.around, md), fieldNamed(md, tokens[i])}
		if s.field == nil {
			if i < len(tokens)-1 {
				return spot{} // in a Struct, or a well-known type in an Any
			}
			return s
		}
		next := node.Child(tokens[i])
		if md = s.field.Message(); (s.field.IsList() || s.field.IsMap()) && i+1 < len(tokens) {
			i++
			if next != nil {
				next = next.Child(tokens[i])
			}
			if s.field.IsMap() {
				md = s.field.MapValue().Message()
			}
		}
		if next == nil {
			break
		}
		node = *next
	}
	return s
}

// payloadType returns the message type that the Any at a node names.
func payloadType(r resolver, text []byte, node syntax.JSONNode) protoreflect.MessageDescriptor {
	at := node.Child("@type")
	if at == nil {
		return nil
	}
	var url string
	if json.NewDecoder(strings.NewReader(string(text[at.Value:]))).Decode(&url) != nil {
		return nil
	}
	mt, err := r.FindMessageByURL(url)
	if err != nil {
		return nil
	}
	return mt.Descriptor()
}

// fieldNamed is a field by its proto or JSON name.
func fieldNamed(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByTextName(name); fd != nil {
		return fd
	}
	return md.Fields().ByJSONName(name)
}

// message is the type of the field's value, nil for a scalar.
func (s spot) message() protoreflect.MessageDescriptor {
	if s.field == nil {
		return nil
	}
	return s.field.Message()
}

// suggestField says which field may be meant by a name that the message has not.
func (s spot) suggestField(name string) string {
	switch {
	case len(s.around) == 0:
		return ""
	case name == "@type":
		return "remove it: the type is known here"
	}
	md := s.around[len(s.around)-1]
	if successor := envoyapi.Removed(md.FullName(), name); successor != "" {
		return "the API had this field once: " + successor
	}
	if entry := strings.TrimLeft(name, "-–—"); entry != name {
		return fmt.Sprintf(`write "- %s": a list entry begins with a dash and a space`, strings.TrimSpace(entry))
	}
	if md.FullName() == headerOption && fieldNamed(md, name) == nil && name != "key" && name != "value" {
		return "write header: {key: …, value: …}"
	}
	if plain := strings.Trim(name, syntax.CurlyQuotes); plain != name {
		return fmt.Sprintf("write %q: these are not YAML quotes", plain)
	}
	if near := nearestField(md, name); near != nil {
		return fmt.Sprintf("did you mean %s?", near.Name())
	}
	// A field at the wrong depth: mostly an indentation.
	for i := len(s.around) - 2; i >= 0; i-- {
		if fieldNamed(s.around[i], name) != nil {
			return fmt.Sprintf("it is a field of %s, further out: check the indentation", s.around[i].Name())
		}
	}
	inside := ""
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.Message() == nil || fd.IsMap() || fieldNamed(fd.Message(), name) == nil {
			continue
		}
		if inside != "" {
			return ""
		}
		inside = string(fd.Name())
	}
	if inside != "" {
		return fmt.Sprintf("it is a field of %s: check the indentation", inside)
	}
	return ""
}

// correctField returns the correction of an unknown name to the field that was likely meant, which the source calls
// right. The correction is not sure if Envoy skips unknown fields of the file, because it would make Envoy read more.
func correctField(s *Source, name string, meant protoreflect.FieldDescriptor, right string) diag.Correction {
	var names []string
	fields := meant.ContainingMessage().Fields()
	for i := range fields.Len() {
		names = append(names, string(fields.Get(i).Name()))
	}
	sure := diag.NewCandidates(names).Misspelt(snakeCase(name), string(meant.Name()), xds.IsWord)
	return diag.Correction{Wrong: name, Right: right, Sure: sure && !s.readsLaxly()}
}

// nearestField returns the field most like a name, or nil.
func nearestField(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	name = strings.NewReplacer("-", "_", " ", "_").Replace(name)
	if fd := md.Fields().ByName(protoreflect.Name(snakeCase(name))); fd != nil {
		return fd
	}
	var names []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if o, _ := fd.Options().(*descriptorpb.FieldOptions); !o.GetDeprecated() { // Envoy refuses some of these
			names = append(names, string(fd.Name()))
		}
	}
	return md.Fields().ByName(protoreflect.Name(diag.NewCandidates(names).Nearest(snakeCase(name))))
}

// snakeCase is the proto name of a field that was written in either spelling.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if 'A' <= r && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// valuesOf returns the names of an enum's values. It leaves deprecated values out: Envoy refuses some of
// them.
func valuesOf(enum protoreflect.EnumDescriptor) (names []string) {
	for i := range enum.Values().Len() {
		value := enum.Values().Get(i)
		if o, _ := value.Options().(*descriptorpb.EnumValueOptions); !o.GetDeprecated() {
			names = append(names, string(value.Name()))
		}
	}
	return names
}

// onlyWith returns the only name with a word at its beginning or end, such as STRICT in STRICT_DNS, or "".
func onlyWith(names []string, word string) (found string) {
	for _, name := range names {
		if word == "" || !strings.HasPrefix(name, word+"_") && !strings.HasSuffix(name, "_"+word) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// suggestValue lists the values of an enum for an unknown name, and returns the correction to the value that was
// likely meant. The correction has no Right if no value is similar.
func (s spot) suggestValue(name string) (help string, c diag.Correction) {
	help, right, sure := s.valueFor(name)
	return help, diag.Correction{Wrong: name, Right: right, Sure: sure}
}

// valueFor is suggestValue. sure means that the name can only be a misspelling of meant.
func (s spot) valueFor(name string) (help, meant string, sure bool) {
	if s.field == nil || s.field.Enum() == nil {
		return "", "", false
	}
	if isVariable.MatchString(name) {
		return "write the value here: neither xdspub nor Envoy fills in variables", "", false
	}
	names := valuesOf(s.field.Enum())
	written := strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(strings.Trim(name, `"`)))
	written = written[strings.LastIndexByte(written, '.')+1:]
	for _, n := range names {
		if n == written {
			if !strings.EqualFold(strings.Trim(name, `"`), n) {
				return "write " + n, n, true
			}
			return fmt.Sprintf("write it in capitals: %s", n), n, true
		}
	}
	candidates := diag.NewCandidates(names)
	if near := candidates.Nearest(written); near != "" {
		return fmt.Sprintf("did you mean %s?", near), near, candidates.Misspelt(written, near, xds.IsWord)
	}
	if near := onlyWith(names, written); near != "" {
		return fmt.Sprintf("did you mean %s?", near), near, false
	}
	if len(names) == 1 {
		return "write " + names[0], names[0], false
	}
	if len(names) <= 8 {
		return "it is one of " + strings.Join(names, ", "), "", false
	}
	return "", "", false
}
