package decode

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/source/syntax"
	"xdspub/xds"
)

// HoldsBootstrap reports whether a file is an Envoy bootstrap rather than a file of resources. It
// goes by the names at the top of YAML and JSON, without parsing the file. An empty document,
// such as {}, counts as a bootstrap, as it does for Envoy.
func HoldsBootstrap(path string) bool {
	s, err := ReadSource(path, syntax.FormatOf(path), SourceOptions{})
	if err != nil {
		return false
	}
	switch s.Format {
	case syntax.Binary:
		return bytesAreBootstrap(s.Data())
	case syntax.TextProto:
		return textIsBootstrap(s.Data())
	}
	text := bytes.TrimLeft(s.Data(), syntax.JSONSpace)
	if bytes.HasPrefix(text, []byte("{")) {
		return objectIsBootstrap(text)
	}
	found := false
	for line := range bytes.Lines(text) {
		switch {
		case line[0] == ' ': // most lines: not at the top
		case resourcesLine.Match(line):
			return false
		case bootstrapLine().Match(line):
			found = true
		case typeLine.Match(line): // fields of a cluster are called like some of a bootstrap
			return false
		}
	}
	return found
}

var (
	bootstrapLine = sync.OnceValue(func() *regexp.Regexp {
		fields := (&bootstrapv3.Bootstrap{}).ProtoReflect().Descriptor().Fields()
		var names []string
		for i := range fields.Len() {
			names = append(names, string(fields.Get(i).Name()), fields.Get(i).JSONName())
		}
		return regexp.MustCompile(`^(?:!ignore[ \t]+)?["']?(?:` + strings.Join(names, "|") +
			`)["']?[ \t]*:|^["']?@type["']?[ \t]*:.*/` + regexp.QuoteMeta(string(xds.Bootstrap.Message)) + `\b`)
	})
	typeLine      = regexp.MustCompile(`^["']?@type["']?[ \t]*:`)
	resourcesLine = regexp.MustCompile(`^["']?resources["']?[ \t]*:`)
)

// isBootstrapField reports whether a Bootstrap has a field of that name, in either spelling.
func isBootstrapField(name string) bool {
	return fieldNamed((&bootstrapv3.Bootstrap{}).ProtoReflect().Descriptor(), name) != nil
}

// textIsBootstrap is HoldsBootstrap for a text proto.
func textIsBootstrap(text []byte) bool {
	if messageNamed(text) != nil {
		return false // the header says what it is
	}
	root := syntax.ParseText(text)
	md := (&bootstrapv3.Bootstrap{}).ProtoReflect().Descriptor()
	for i := range root.Children {
		name := root.Children[i].Name
		if isBootstrapField(name) || md.ReservedNames().Has(protoreflect.Name(name)) {
			return true
		}
	}
	return root.Whole && len(root.Children) == 0
}

// bytesAreBootstrap is HoldsBootstrap for a binary file. Some bytes can be read as a
// DiscoveryResponse too, but not with a resource of a type that is known.
func bytesAreBootstrap(data []byte) bool {
	response := &discoveryv3.DiscoveryResponse{}
	if (resolver{}).binary().Unmarshal(data, response) == nil {
		for _, r := range response.GetResources() {
			if _, err := (resolver{}).FindMessageByURL(r.GetTypeUrl()); err == nil {
				return false
			}
		}
	}
	b := &bootstrapv3.Bootstrap{}
	if (resolver{}).binary().Unmarshal(data, b) != nil {
		return false
	}
	known := len(data) == 0
	b.ProtoReflect().Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool {
		known = true
		return false
	})
	return known
}

// objectIsBootstrap is HoldsBootstrap for an object of JSON, or of YAML in flow style.
func objectIsBootstrap(text []byte) bool {
	if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
		if root := syntax.ParseYAML(text); root != nil && root.Kind == yaml.MappingNode {
			names := false
			for i := 0; i < len(root.Content); i += 2 {
				switch key := root.Content[i].Value; {
				case key == "resources", key == "@type" && !namesBootstrap(root.Content[i+1].Value):
					return false
				default:
					names = names || key == "@type" || isBootstrapField(key)
				}
			}
			return names
		}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	found := dec.PeekKind() == '}'
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return false
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil || key == "resources" || key == "@type" && !namesBootstrap(strings.Trim(string(value), `"`)) {
			return false
		}
		found = found || key == "@type" || isBootstrapField(key)
	}
	return found
}

// namesBootstrap reports whether a type URL is that of a Bootstrap.
func namesBootstrap(url string) bool {
	return strings.HasSuffix(url, "/"+string(xds.Bootstrap.Message))
}

// bootstrapDocument takes over a document that is a Bootstrap.
func bootstrapDocument(d *decoder, v value) {
	members, ok := syntax.ObjectOf(v.text)
	if !ok {
		if m := v.doc.ForeignText(); m != nil {
			d.lose(m.Finding(v.doc.Document))
			return
		}
		d.lose(v.finding(syntax.CodeUnknownDocument, fmt.Sprintf("a bootstrap is an "+
			"object, this is %s", syntax.KindOfJSON(v.text)), "write static_resources: or dynamic_resources: at the top"))
		return
	}
	if f := v.foreignDocument(members); f != nil && !has(members, "static_resources") {
		d.lose(v.notXDS(*f))
		return
	}
	if has(members, "@type") {
		d.report(v.field("@type", nil).finding(codeUnknownField, `unknown field "@type": a bootstrap has none, and Envoy does not start`, "remove the line"))
	}
	d.bootstrap(v, members, nil)
}
