package grpcboot

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Resolved is the listener that a gRPC client asks for at a target, or that a gRPC server asks for at an address.
type Resolved struct {
	// Authority is the authority of the listener's name, or nil.
	Authority *string
	// Servers are the servers to ask for the listener, in this order.
	Servers []Server
	// Listener is the name of the listener.
	Listener string
	// ByGo is the name that grpc-go uses if it differs from Listener, or else "". grpc-go encodes more characters
	// than the description of the format demands, and sorts parameters.
	ByGo string
	// OfServer means that a gRPC server subscribes to the listener.
	OfServer bool
}

// Target returns the listener that a client asks for. target is a target such as xds:///greeter or
// xds://authority/greeter.
func (c *Config) Target(target string) (*Resolved, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "xds" {
		return nil, fmt.Errorf("%q is no target of xDS: write xds:///NAME or xds://AUTHORITY/NAME", target)
	}
	path := u.Path
	if path == "" {
		path = u.Opaque
	}
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return nil, fmt.Errorf("%q names nothing: write xds:///NAME or xds://AUTHORITY/NAME", target)
	}
	if u.Host == "" {
		template := c.ClientTemplate
		if template == "" {
			template = "%s"
		}
		return c.resolve(template, path)
	}
	a, ok := c.Authorities[u.Host]
	if !ok {
		return nil, fmt.Errorf("the bootstrap has no authority %q: a client makes no connection", u.Host)
	}
	if a.Template == "" {
		a.Template = newStyle + "//" + url.PathEscape(u.Host) + "/" + listenerType + "/%s"
	}
	return c.resolve(a.Template, path)
}

// Address returns the listener that a gRPC server asks for. address is the IP:PORT on which the server listens.
func (c *Config) Address(address string) (*Resolved, error) {
	ip, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address of a server: write IP:PORT, such as 0.0.0.0:8080 or [::]:8080", address)
	}
	if c.ServerTemplate == "" {
		return nil, errors.New("the bootstrap has no server_listener_resource_name_template: a gRPC server does not start")
	}
	r, err := c.resolve(c.ServerTemplate, ip.String())
	if r != nil {
		r.OfServer = true
	}
	return r, err
}

// resolve replaces %s in a template, and finds the servers for the resulting name.
func (c *Config) resolve(template, with string) (*Resolved, error) {
	if !strings.HasPrefix(template, newStyle) {
		return &Resolved{Servers: c.Servers, Listener: strings.ReplaceAll(template, "%s", with)}, nil
	}
	r := &Resolved{Servers: c.Servers, Listener: strings.ReplaceAll(template, "%s", encode(with))}
	if byGo := nameByGo(r.Listener); byGo != r.Listener {
		r.ByGo = byGo
	}
	name, _, _ := splitName(r.Listener)
	a, ok := c.Authorities[name]
	if !ok {
		return nil, fmt.Errorf("the name %s has the authority %q, which authorities does not have", r.Listener, name)
	}
	if r.Authority = &name; len(a.Servers) > 0 {
		r.Servers = a.Servers
	}
	return r, nil
}

// inPath are the characters, besides letters and digits, that RFC 3986 (section 3.3) allows in a path.
const inPath = "-._~!$&'()*+,;=:@/"

// encode percent-encodes the characters that a path must not have.
func encode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(inPath, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// nameByGo returns the form in which grpc-go sends a name: grpc-go decodes the path, and encodes it by its own
// rules.
func nameByGo(name string) string {
	u, err := url.Parse(name)
	if err != nil {
		return name
	}
	u.RawPath = ""
	query := u.Query()
	var parameters []string
	for _, key := range slices.Sorted(maps.Keys(query)) {
		parameters = append(parameters, key+"="+query.Get(key))
	}
	u.RawQuery = strings.Join(parameters, "&")
	return u.String()
}
