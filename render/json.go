package render

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// resourceJSON is a message as it stands in the resources of a DiscoveryResponse:
// with an @type, snake_case names, indented. protojson spaces its output
// differently from build to build on purpose; json.Indent makes it one again.
func resourceJSON(m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	typed := make([]byte, 0, len(raw)+128)
	typed = append(typed, `{"@type":"`+xds.URLPrefix+string(m.ProtoReflect().Descriptor().FullName())+`"`...)
	if body := bytes.TrimSpace(raw[1:]); body[0] != '}' {
		typed = append(typed, ',')
	}
	typed = append(typed, raw[1:]...)
	var out bytes.Buffer
	out.Grow(2 * len(typed))
	if err := json.Indent(&out, typed, "    ", "  "); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
