package decode

import (
	"bytes"
	"encoding/json"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Dump is the text of an Envoy's /config_dump. Its reader knows the paths of resources in the dump.
type Dump struct {
	*PlainJSON
	envoy *envoyapi.Version
}

// HoldsDump reports whether a text is what /config_dump prints, or the beginning of that, rather than a bootstrap. It
// goes by the names at the top.
func HoldsDump(f syntax.Format, text []byte) bool {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), syntax.JSONSpace)
	if f != syntax.JSON && f != syntax.YAML || !syntax.BeginsWith(text, '{') {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil || name.String() == "configs" {
			return err == nil
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}

// ParseDump makes a Dump of the text of a file, for the release v; nil means the latest known release. The findings say
// why the text is no JSON, or is too large.
func ParseDump(name string, data []byte, v *envoyapi.Version) (*Dump, diag.List) {
	j, findings := parseJSON(name, data, v)
	d := &decoder{file: NewFile(j.document.source)}
	if len(findings) == 0 && tooMany(d) {
		findings = d.file.Diagnostics()
	}
	return &Dump{j, v}, findings
}

// Resource decodes a resource that names its type; text is the value at the path. The resource is nil if
// nothing could be read. The findings report the unreadable parts.
func (d *Dump) Resource(path xds.Path, text []byte) (*xds.Resource, diag.List) {
	f := NewFile(d.document.source)
	(&decoder{file: f}).element(value{doc: d.document, text: text, path: path})
	if len(f.Resources) == 0 {
		return nil, f.Diagnostics()
	}
	return f.Resources[0], f.Diagnostics()
}

// Bootstrap decodes the bootstrap whose text stands at the path, as strictly as Envoy does. It
// returns what BootstrapResources does, as resources.
func (d *Dump) Bootstrap(path xds.Path, text []byte) ([]*xds.Resource, diag.List) {
	s := NewSource(d.document.source.Name, syntax.JSON, d.document.Text, SourceOptions{Envoy: d.envoy, Bootstrap: true})
	f := NewFile(s)
	bootstrapDocument(&decoder{file: f}, value{doc: s.documents()[0], text: text, path: path})
	if f.Bootstrap == nil {
		f.Bootstrap = xds.ResourceOf(xds.Key{Type: xds.Bootstrap}, &bootstrapv3.Bootstrap{})
	}
	return append([]*xds.Resource{f.Bootstrap}, f.Resources...), f.Diagnostics()
}

// redactions are what Envoy writes in place of secret text and of secret bytes.
var redactions = []string{"[redacted]", "W3JlZGFjdGVkXQ=="}

// Redacted returns the paths at which Envoy left a secret out. text is what stands at the path.
func (d *Dump) Redacted(path xds.Path, text []byte) (paths []xds.Path) {
	if !bytes.Contains(text, []byte("redacted")) && !bytes.Contains(text, []byte("W3JlZGFjdGVkXQ")) && !bytes.Contains(text, []byte(`\u`)) {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return paths
		}
		kind, n := dec.StackIndex(dec.StackDepth())
		if token.Kind() != '"' || kind == '{' && n%2 == 1 {
			continue
		}
		for _, r := range redactions {
			if strings.TrimRight(token.String(), "=") == strings.TrimRight(r, "=") {
				paths = append(paths, path.Join(stackPath(dec)))
			}
		}
	}
}

// Members returns the members of an object by their names, and false for what is none. The text
// has to be of the Dump.
func (d *Dump) Members(text []byte) (map[string]json.RawMessage, bool) {
	if !syntax.BeginsWith(text, '{') {
		return nil, false
	}
	return syntax.ObjectOf(text)
}

// Elements returns the elements of a list, and false for what is none. The text has to be of the
// Dump.
func (d *Dump) Elements(text []byte) ([]json.RawMessage, bool) {
	if !syntax.BeginsWith(text, '[') {
		return nil, false
	}
	return syntax.ListOf(text)
}

// Text returns the whole text.
func (d *Dump) Text() []byte { return bytes.TrimSpace(d.document.Text) }
