package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

// Bootstrap reads an Envoy bootstrap, in the format that Envoy takes from its suffix, as
// strictly as Envoy does. An error means that the file can't be
// read; what is wrong in it is in the list, and what could not be read for that is not
// in the Bootstrap. There is none where nothing could be read.
func Bootstrap(path string) (*bootstrapv3.Bootstrap, diag.List, error) {
	b, result, err := BootstrapResources(path)
	if err != nil {
		return nil, nil, err
	}
	return b, result.Diagnostics, nil
}

// BootstrapResources is Bootstrap with what can be judged in it: the Result's
// Resources are the bootstrap itself, of type xds.Bootstrap and without its static
// resources, then these.
func BootstrapResources(path string) (*bootstrapv3.Bootstrap, *Result, error) {
	s, err := readSource(path, envoyFormat(path))
	if err != nil {
		return nil, nil, err
	}
	s.byEnvoy, s.asWritten, s.isBootstrap = true, true, true
	f, result := parse(s)
	if f.bootstrap == nil {
		return nil, result, nil
	}
	b := &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{}}
	f.bootstrap.Message.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		b.ProtoReflect().Set(fd, value)
		return true
	})
	for _, r := range result.Resources {
		switch m := r.Message.(type) {
		case *listenerv3.Listener:
			b.StaticResources.Listeners = append(b.StaticResources.Listeners, m)
		case *clusterv3.Cluster:
			b.StaticResources.Clusters = append(b.StaticResources.Clusters, m)
		case *tlsv3.Secret:
			b.StaticResources.Secrets = append(b.StaticResources.Secrets, m)
		}
	}
	result.Resources = slices.Insert(result.Resources, 0, f.bootstrap)
	return b, result, nil
}

// HoldsBootstrap tells whether a file is an Envoy bootstrap, and no file of
// resources, by the names at its top: it is not parsed for that. A binary file is
// none: the same bytes can be a Bootstrap and a DiscoveryResponse.
func HoldsBootstrap(path string) bool {
	s, err := readSource(path, formatOf(path))
	if err != nil || s.format == formatBinary {
		return false
	}
	text := bytes.TrimLeft(s.data, jsonSpace)
	if bytes.HasPrefix(text, []byte("{")) {
		return objectIsBootstrap(text)
	}
	found := false
	for line := range bytes.Lines(text) {
		switch {
		case line[0] == ' ': // most lines: not at the top
		case resourcesLine.Match(line):
			return false
		default:
			found = found || bootstrapLine.Match(line)
		}
	}
	return found
}

var (
	bootstrapLine = regexp.MustCompile(`^["']?(?:` + strings.Join(bootstrapFields, "|") + `)["']?[ \t]*[:{]|^["']?@type["']?[ \t]*:.*/` + regexp.QuoteMeta(string(xds.Bootstrap.Message)) + `\b`)
	resourcesLine = regexp.MustCompile(`^["']?resources["']?[ \t]*[:{]`)
)

// objectIsBootstrap is HoldsBootstrap for an object of JSON.
func objectIsBootstrap(text []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	found := false
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return false
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil || key == "resources" {
			return false
		}
		found = found || slices.Contains(bootstrapFields, key) || key == "@type" && bytes.HasSuffix(value, []byte("/"+string(xds.Bootstrap.Message)+`"`))
	}
	return found
}

// bootstrapDocument takes over a document that is a Bootstrap.
func (d *decoder) bootstrapDocument(v value) {
	var members map[string]json.RawMessage
	if json.Unmarshal(v.text, &members) != nil {
		d.report(v.finding(codeUnknownDocument, fmt.Sprintf("a bootstrap is an object, this is %s", kindName(v.text)), ""))
		return
	}
	if has(members, "@type") {
		d.report(v.field("@type", nil).finding(codeUnknownField, `unknown field "@type": a bootstrap has none, and Envoy does not start`, "remove the line"))
	}
	d.bootstrap(v, members, nil)
}

// keepBootstrap keeps what a Bootstrap says beside its static resources.
func (d *decoder) keepBootstrap(v value, rest *bootstrapv3.Bootstrap, lost xds.Lost) {
	d.file.bootstrap = &xds.Resource{Key: xds.Key{Type: xds.Bootstrap}, Message: rest, Lost: lost, Origin: origin{v.doc, v.path, nil}}
}
