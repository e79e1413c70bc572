package grpcboot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// parser parses a document, and collects findings.
type parser struct {
	doc   *decode.PlainJSON
	found diag.Bounded
}

// value is a value in the document, and its path.
type value struct {
	path xds.Path
	raw  json.RawMessage
}

// object is a kind of object: its name in messages, and the names of its fields. The fields newer come from
// proposals of gRPC. The description of the format lacks them, and they are not judged.
type object struct {
	name          string
	fields, newer []string
}

var (
	bootstrapObject = &object{"the bootstrap", []string{
		"xds_servers", "node", "certificate_providers",
		"server_listener_resource_name_template", "client_default_listener_resource_name_template", "authorities", "allowed_grpc_services",
	}, nil}
	serverObject      = &object{"an entry of xds_servers", []string{"server_uri", "channel_creds", "server_features", "call_creds"}, nil}
	credentialsObject = &object{"an entry of channel_creds", []string{"type", "config"}, nil}
	filesObject       = &object{"the config of tls and of " +
		"file_watcher", []string{"ca_certificate_file", "certificate_file", "private_key_file", "refresh_interval"},
		[]string{"spiffe_trust_bundle_map_file"}} // gRFC A87
	nodeObject      = &object{"node", []string{"id", "cluster", "locality", "metadata"}, nil}
	localityObject  = &object{"locality", []string{"region", "zone", "sub_zone"}, nil}
	providerObject  = &object{"an entry of certificate_providers", []string{"plugin_name", "config"}, nil}
	authorityObject = &object{"an entry of authorities", []string{"client_listener_resource_name_template", "xds_servers"}, nil}

	callObject    = &object{"an entry of call_creds", []string{"type", "config"}, nil}
	tokenObject   = &object{"the config of jwt_token_file", []string{"jwt_token_file"}, nil}
	serviceObject = &object{"an entry of allowed_grpc_services", []string{"channel_creds", "call_creds"}, nil}

	objects = []*object{
		bootstrapObject, serverObject, credentialsObject, callObject, tokenObject, serviceObject, filesObject,
		nodeObject, localityObject, providerObject, authorityObject,
	}
)

// report adds a finding unless the limit is reached.
func (p *parser) report(code diag.Code, path xds.Path, key bool, message, help string) {
	if !p.found.HasRoom(code.Severity) {
		p.found.Leave(code.Severity)
		return
	}
	p.found.Add(p.doc.Finding(code, path, key, message, help))
}

func (p *parser) refuse(path xds.Path, message, help string) {
	p.report(codeRefused, path, false, message, help)
}

func (p *parser) ignore(path xds.Path, message, help string) {
	p.report(codeIgnored, path, false, message, help)
}

// name returns the name of a value in messages: its last field.
func (v value) name() string {
	path := string(v.path)
	switch i := strings.LastIndexByte(path, '.'); {
	case path == "":
		return "the bootstrap"
	case strings.HasSuffix(path, "]"):
		return path
	default:
		return path[i+1:]
	}
}

// wrong reports a value of the wrong type.
func (p *parser) wrong(v value, wants string) {
	p.refuse(v.path, fmt.Sprintf("%s has to be %s, and is %s", v.name(), wants, syntax.KindOfJSON(v.raw)), "")
}

// entries returns the members of an object by name. A member null is an entry. ok is false if the value is not an
// object, which a finding then reports.
func (p *parser) entries(v value) (m map[string]json.RawMessage, ok bool) {
	if v.raw[0] != '{' {
		p.wrong(v, "an object")
		return nil, false
	}
	return m, json.Unmarshal(v.raw, &m) == nil // the document is valid JSON, and not too deep
}

// fields returns the members of an object of a kind, and reports unknown members. It leaves out members that are
// null, because clients treat null as an absent field.
func (p *parser) fields(v value, of *object) (m map[string]value, ok bool) {
	entries, ok := p.entries(v)
	m = make(map[string]value, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		switch at := v.path.Field(name); {
		case slices.Contains(of.newer, name):
		case !slices.Contains(of.fields, name):
			p.unknown(v, of, name)
		case !bytes.Equal(entries[name], []byte("null")):
			m[name] = value{at, entries[name]}
		}
	}
	return m, ok
}

// unknown reports a field that clients ignore.
func (p *parser) unknown(v value, of *object, name string) {
	help := ""
	if meant := nearest(of.fields, name); meant != "" {
		help = fmt.Sprintf("did you mean %s?", meant)
	} else if i := slices.IndexFunc(objects, func(o *object) bool { return slices.Contains(o.fields, name) }); i >= 0 {
		help = "it is a field of " + objects[i].name
	}
	p.report(codeIgnored, v.path.Key(name), true, fmt.Sprintf("%s has no field %q: clients ignore it", of.name, diag.Clip(name, diag.MaxWord)), help)
}

var separators = strings.NewReplacer("_", "", "-", "")

// nearest returns the name that was likely meant, or "" if no name is similar.
func nearest(names []string, name string) string {
	plain := func(s string) string { return strings.ToLower(separators.Replace(s)) }
	for _, n := range names {
		if plain(n) == plain(name) {
			return n
		}
	}
	return diag.NewCandidates(names).Nearest(name)
}

// text returns the value of a text field, or "" if the field is absent or no text.
func (p *parser) text(m map[string]value, name string) string {
	v, ok := m[name]
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(v.raw, &s) != nil {
		p.wrong(v, "text")
	}
	return s
}

// required returns the value of a text field, and reports a missing or empty value, because clients then refuse the
// bootstrap.
func (p *parser) required(v value, m map[string]value, name, help string) string {
	s := p.text(m, name)
	switch given, ok := m[name]; {
	case !ok:
		p.refuse(v.path, fmt.Sprintf("%s has no %s", v.name(), name), help)
	case s == "" && given.raw[0] == '"':
		p.refuse(given.path, name+" is empty", help)
	}
	return s
}

// list returns the elements of a list field.
func (p *parser) list(m map[string]value, name string) (elements []value) {
	v, ok := m[name]
	if !ok {
		return nil
	}
	var raw []json.RawMessage
	if json.Unmarshal(v.raw, &raw) != nil {
		p.wrong(v, "a list")
		return nil
	}
	for i, r := range raw {
		elements = append(elements, value{v.path.Index(i), r})
	}
	return elements
}

// named calls each for the entries of a field that must be a map.
func (p *parser) named(m map[string]value, name string, each func(name string, v value)) {
	v, ok := m[name]
	if !ok {
		return
	}
	entries, _ := p.entries(v)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		each(key, value{v.path.Key(key), entries[key]})
	}
}
