package render

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// JSON is the default format: people can read it, and Envoy refuses a damaged file.
var JSON = &Format{Name: "json", message: messageJSON, resource: resourceJSON, response: responseJSON}

func messageJSON(g *xds.Registry, m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: g}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// typedJSON returns a message as protojson writes it, with an @type and snake_case
// names. Its spacing differs from build to build on purpose.
func typedJSON(g *xds.Registry, m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: g}.Marshal(m)
	if err != nil {
		return nil, err
	}
	typed := make([]byte, 0, len(raw)+128)
	typed = append(typed, `{"@type":"`+xds.URLPrefix+string(m.ProtoReflect().Descriptor().FullName())+`"`...)
	if body := bytes.TrimSpace(raw[1:]); body[0] != '}' {
		typed = append(typed, ',')
	}
	return append(typed, raw[1:]...), nil
}

func resourceJSON(g *xds.Registry, m proto.Message, _ []byte) ([]byte, error) {
	typed, err := typedJSON(g, m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(2 * len(typed))
	if err := json.Indent(&out, typed, "    ", "  "); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func responseJSON(version, typeURL string, resources [][]byte) ([]byte, error) {
	data := make([]byte, 0, sizeOf(resources))
	data = append(data, "{\n  \"version_info\": \""+version+"\",\n  \"type_url\": \""+typeURL+"\",\n  \"resources\": ["...)
	for i, r := range resources {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, "\n    "...)
		data = append(data, r...)
	}
	if len(resources) > 0 {
		data = append(data, "\n  "...)
	}
	return append(data, "]\n}\n"...), nil
}
