package render

import (
	"bytes"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Text is protobuf's text format, for people who compare or debug messages. Envoy has its own parser of text,
// so Text reads its output back to check the output.
var Text = &Format{
	Name:     "pb_text",
	message:  func(g *xds.Registry, m proto.Message) ([]byte, error) { return textLines(g, m, "") },
	resource: resourceText, response: responseText,
}

func resourceText(g *xds.Registry, m proto.Message, canonical []byte) ([]byte, error) {
	body, err := textLines(g, m, "    ")
	if err != nil {
		return nil, err
	}
	if err := readsBack(m, canonical, body, prototext.UnmarshalOptions{Resolver: g}.Unmarshal); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(body)+128)
	out = append(out, "resources: {\n  ["+xds.URLPrefix+string(m.ProtoReflect().Descriptor().FullName())+"]: {\n"...)
	return append(append(out, body...), "  }\n}\n"...), nil
}

// textLines returns the fields of a message, a line each.
func textLines(g *xds.Registry, m proto.Message, indent string) ([]byte, error) {
	raw, err := prototext.MarshalOptions{Multiline: true, Indent: "  ", Resolver: g}.Marshal(m)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, 2*len(raw))
	for line := range bytes.Lines(raw) {
		out = appendLine(append(out, indent...), line)
	}
	return out, nil
}

// appendLine undoes what prototext does on purpose, to differ from build to build:
// it puts one space or two behind the name of a field. A line is one field; that
// of a payload is named by its type, as in [type.googleapis.com/a.b.C].
func appendLine(b, line []byte) []byte {
	name, value, ok := bytes.Cut(line, []byte(":  "))
	if !ok || bytes.ContainsRune(name, '"') { // what was found stands in a value
		return append(b, line...)
	}
	return append(append(append(b, name...), ": "...), value...)
}

func responseText(version, typeURL string, resources [][]byte) ([]byte, error) {
	data := make([]byte, 0, sizeOf(resources))
	data = append(data, "version_info: \""+version+"\"\ntype_url: \""+typeURL+"\"\n"...)
	for _, r := range resources {
		data = append(data, r...)
	}
	return data, nil
}
