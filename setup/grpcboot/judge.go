package grpcboot

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/source/syntax"
)

// config returns the whole bootstrap.
func (p *parser) config(v value) *Config {
	c := &Config{Providers: make(map[string]Provider), Authorities: make(map[string]Authority)}
	m, ok := p.fields(v, bootstrapObject)
	if !ok {
		return c
	}
	if servers, ok := m["xds_servers"]; !ok {
		p.refuse(v.path, "the bootstrap has no xds_servers", `write "xds_servers": [{"server_uri": "HOST:PORT", "channel_creds": [{"type": "insecure"}]}]`)
	} else if c.Servers = p.servers(m); c.Servers == nil && strings.HasPrefix(string(servers.raw), "[") {
		p.refuse(servers.path, "xds_servers is empty", "a client needs one server")
	}
	c.Node = p.node(m)
	p.named(m, "certificate_providers", func(name string, v value) { c.Providers[name] = p.provider(v) })
	p.named(m, "authorities", func(name string, v value) { c.Authorities[name] = p.authority(name, v) })
	p.named(m, "allowed_grpc_services", func(_ string, v value) { p.service(v) })
	c.ClientTemplate = p.text(m, "client_default_listener_resource_name_template")
	c.ServerTemplate = p.text(m, "server_listener_resource_name_template")
	p.template(c, m["client_default_listener_resource_name_template"], c.ClientTemplate)
	p.template(c, m["server_listener_resource_name_template"], c.ServerTemplate)
	return c
}

// servers returns the servers of the bootstrap or of an authority.
func (p *parser) servers(m map[string]value) (list []Server) {
	seen := make(map[string]value)
	for _, v := range p.list(m, "xds_servers") {
		s := p.server(v)
		list = append(list, s)
		key, _ := json.Marshal(s) // a Server holds only texts, which can be encoded
		if first, ok := seen[string(key)]; !ok {
			seen[string(key)] = v
		} else if s.URI != "" {
			p.refuse(v.path, fmt.Sprintf("%s is the same as %s: clients on C-core crash if the server is down", v.name(), first.name()), "remove one of them")
		}
	}
	return list
}

func (p *parser) server(v value) (s Server) {
	m, ok := p.fields(v, serverObject)
	if !ok {
		return s
	}
	s.URI = p.required(v, m, "server_uri", "write HOST:PORT, dns:///HOST:PORT or unix:PATH")
	p.uri(m["server_uri"], s.URI)
	s.Credentials = p.credentials(v, m)
	for _, f := range p.list(m, "server_features") {
		var name string
		if json.Unmarshal(f.raw, &name) != nil || f.raw[0] == 'n' {
			p.ignore(f.path, fmt.Sprintf("a feature is text, and this is %s: clients ignore it, but grpc-go refuses "+
				"the bootstrap", syntax.KindOfJSON(f.raw)), "")
			continue
		}
		s.Features = append(s.Features, name)
		p.feature(f, name)
	}
	s.CallCredentials = p.callCredentials(m)
	return s
}

// features are the server features that clients know. They are in the description of the format, or in newer
// proposals (A81, A88).
var features = []string{"xds_v3", "ignore_resource_deletion", "trusted_xds_server", "fail_on_data_errors", "resource_timer_is_transient_error"}

func (p *parser) feature(v value, name string) {
	if slices.Contains(features, name) {
		return
	}
	p.ignore(v.path, fmt.Sprintf("no client knows the server feature %q: clients ignore it", name), oneOf(features, name))
}

var (
	scheme  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	schemes = []string{"dns", "unix", "unix-abstract", "ipv4", "ipv6", "vsock", "passthrough"}
)

// uri judges the gRPC target of a server.
func (p *parser) uri(v value, uri string) {
	if strings.HasPrefix(uri, "xds:") {
		p.refuse(v.path, "a client can't find its xDS server by xDS", "write HOST:PORT, dns:///HOST:PORT or unix:PATH")
		return
	}
	m := scheme.FindStringSubmatch(uri)
	if m == nil || slices.Contains(schemes, m[1]) {
		return
	}
	p.refuse(v.path, fmt.Sprintf("gRPC has no way to connect to a "+
		"server by %s://", m[1]), "write HOST:PORT, dns:///HOST:PORT or unix:PATH; whether TLS is used is said by channel_creds")
}

// credentialTypes are the types of channel credentials that clients know. Every client knows insecure and
// google_default; tls came later (A65).
var credentialTypes = []string{"insecure", "tls", "google_default"}

// credentials returns the channel credentials of a server, in the order of preference.
func (p *parser) credentials(server value, m map[string]value) (list []Credentials) {
	given, ok := m["channel_creds"]
	if !ok {
		p.refuse(server.path, server.name()+" has no channel_creds", `write "channel_creds": [{"type": "insecure"}], or the type tls or google_default`)
		return nil
	}
	strange, last := 0, ""
	for _, v := range p.list(m, "channel_creds") {
		c, ok := p.credential(v)
		list = append(list, c)
		switch {
		case !ok:
		case !slices.Contains(credentialTypes, c.Type):
			strange++
			p.ignore(v.path.Field("type"), fmt.Sprintf("no client knows channel credentials of type %q: clients "+
				"skip the entry", c.Type), oneOf(credentialTypes, c.Type))
		case last != "":
			p.ignore(v.path, fmt.Sprintf("no client uses this entry: each stops at %s, in front of it", last), "put what clients are to prefer first")
		case c.Type != "tls":
			last = c.Type
		}
	}
	if given.raw[0] == '[' && len(list) == strange {
		p.refuse(given.path, "channel_creds has no entry of a type that clients know", oneOf(credentialTypes, ""))
	}
	return list
}

// tokenFile is the type of call credentials that clients know (A97). Clients read call_creds only if the
// environment variable GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS enables them.
const tokenFile = "jwt_token_file"

// callCredentials returns the call credentials of a server or of a service.
func (p *parser) callCredentials(of map[string]value) (list []CallCredentials) {
	for _, v := range p.list(of, "call_creds") {
		m, ok := p.fields(v, callObject)
		if !ok {
			continue
		}
		c := CallCredentials{Type: p.required(v, m, "type", "write "+tokenFile)}
		config, given := m["config"]
		switch {
		case c.Type == "":
		case c.Type != tokenFile:
			p.ignore(m["type"].path, fmt.Sprintf("no client knows call credentials of type %q: clients "+
				"skip the entry", c.Type), oneOf([]string{tokenFile}, c.Type))
		case !given:
			p.refuse(v.path, v.name()+" has no config", `write "config": {"jwt_token_file": "FILE"}`)
		default:
			if m, ok := p.fields(config, tokenObject); ok {
				c.Config = &Token{File: p.required(config, m, "jwt_token_file", "write the path of the file with the token")}
			}
		}
		list = append(list, c)
	}
	return list
}

// service judges an entry of allowed_grpc_services (A102): the credentials for a service to which an xDS server may
// send a client.
func (p *parser) service(v value) {
	if m, ok := p.fields(v, serviceObject); ok {
		p.credentials(v, m)
		p.callCredentials(m)
	}
}

// oneOf returns the help for a wrong name: the name that was likely meant, or all names.
func oneOf(names []string, name string) string {
	if meant := nearest(names, name); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return "write " + strings.Join(names, " or ")
}

// credential parses an entry of channel_creds. ok is false if the entry has no type, which a finding reports.
func (p *parser) credential(v value) (c Credentials, ok bool) {
	m, ok := p.fields(v, credentialsObject)
	if !ok {
		return c, false
	}
	c.Type = p.required(v, m, "type", oneOf(credentialTypes, ""))
	config, given := m["config"]
	switch {
	case !given:
	case c.Type == "tls":
		c.Config = p.files(config)
	default:
		if _, object := p.entries(config); object && slices.Contains(credentialTypes, c.Type) {
			p.ignore(config.path, fmt.Sprintf("%s takes no config: clients ignore it", c.Type), "remove it, or choose the type tls")
		}
	}
	return c, c.Type != ""
}

// files returns the files of TLS in a config.
func (p *parser) files(v value) *Files {
	m, ok := p.fields(v, filesObject)
	if !ok {
		return nil
	}
	f := &Files{
		CA: p.text(m, "ca_certificate_file"), Certificate: p.text(m, "certificate_file"),
		Key: p.text(m, "private_key_file"), RefreshInterval: p.text(m, "refresh_interval"),
	}
	switch {
	case f.Certificate != "" && f.Key == "":
		p.refuse(v.path, "certificate_file needs private_key_file beside it", "")
	case f.Certificate == "" && f.Key != "":
		p.refuse(v.path, "private_key_file needs certificate_file beside it", "")
	case filepath.Dir(f.Certificate) != filepath.Dir(f.Key):
		p.refuse(m["private_key_file"].path, "certificate_file and private_key_file are in different folders, which "+
			"grpc-go refuses", "put both into one folder, so that they are replaced together")
	}
	if interval, ok := m["refresh_interval"]; ok && interval.raw[0] == '"' {
		p.interval(interval, f.RefreshInterval)
	}
	return f
}

// interval judges a duration in the JSON form of google.protobuf.Duration.
func (p *parser) interval(v value, text string) {
	const help = "write seconds, such as 600s or 0.5s"
	var d durationpb.Duration
	switch err := protojson.Unmarshal(v.raw, &d); {
	case err != nil:
		p.refuse(v.path, fmt.Sprintf("refresh_interval %q is no duration", text), help)
	case d.AsDuration() < 0:
		p.refuse(v.path, fmt.Sprintf("refresh_interval %q is negative, which makes grpc-go crash", text), help)
	}
}

func (p *parser) node(of map[string]value) (n Node) {
	v, ok := of["node"]
	if !ok {
		return n
	}
	m, _ := p.fields(v, nodeObject)
	n.ID, n.Cluster = p.text(m, "id"), p.text(m, "cluster")
	if v, ok := m["locality"]; ok {
		m, _ := p.fields(v, localityObject)
		n.Locality = Locality{Region: p.text(m, "region"), Zone: p.text(m, "zone"), SubZone: p.text(m, "sub_zone")}
	}
	if v, ok := m["metadata"]; ok {
		if _, ok := p.entries(v); ok {
			n.Metadata = v.raw
		}
	}
	return n
}

func (p *parser) provider(v value) (c Provider) {
	m, ok := p.fields(v, providerObject)
	if !ok {
		return c
	}
	c.Plugin = p.required(v, m, "plugin_name", "write "+FileWatcher)
	config, given := m["config"]
	switch {
	case c.Plugin == "":
	case c.Plugin != FileWatcher:
		p.ignore(m["plugin_name"].path, fmt.Sprintf("gRPC has no plugin %q: grpc-go ignores the provider, and clients on C-core "+
			"refuse the bootstrap", c.Plugin), oneOf([]string{FileWatcher}, c.Plugin))
	case !given:
		p.refuse(v.path, v.name()+" has no config", "write certificate_file and private_key_file, ca_certificate_file, or all three")
	default:
		c.Config = p.files(config)
		if c.Config != nil && c.Config.CA == "" && c.Config.Certificate == "" && c.Config.Key == "" && !p.hasNewer(config) {
			p.refuse(config.path, "the config of a file_watcher "+
				"names no file", "write certificate_file and private_key_file, ca_certificate_file, or all three")
		}
	}
	return c
}

// hasNewer reports whether the config of a provider has a newer field. xdspub does not judge newer fields, and such
// a field may be the required one.
func (p *parser) hasNewer(v value) bool {
	m, _ := p.entries(v)
	return slices.ContainsFunc(filesObject.newer, func(name string) bool { return m[name] != nil })
}
