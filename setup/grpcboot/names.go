package grpcboot

import (
	"fmt"
	"net/url"
	"strings"

	"xdspub/xds/xdstp"
)

// listenerType is the type in the xdstp name of a listener.
const listenerType = "envoy.config.listener.v3.Listener"

// newStyle is the beginning of names with an authority.
const newStyle = xdstp.Scheme

// authority judges and returns an entry of authorities.
func (p *parser) authority(name string, v value) (a Authority) {
	m, ok := p.fields(v, authorityObject)
	if !ok {
		return a
	}
	a.Servers = p.servers(m)
	a.Template = p.text(m, "client_listener_resource_name_template")
	if a.Template == "" {
		return a
	}
	at, literal, encoded := m["client_listener_resource_name_template"].path, "xdstp://"+name+"/", "xdstp://"+url.PathEscape(name)+"/"
	switch {
	case !strings.HasPrefix(a.Template, literal) && !strings.HasPrefix(a.Template, encoded):
		p.refuse(at, fmt.Sprintf("the template of authority %q has to "+
			"begin with %s", name, literal), fmt.Sprintf("write %s%s/%%s, or leave the template out", literal, listenerType))
	case literal != encoded:
		p.refuse(at, fmt.Sprintf("no template suits all clients: grpc-go wants %s, and clients on "+
			"C-core want %s", encoded, literal), "leave the template out, or give the authority a name of letters, digits, dots and dashes")
	default:
		p.listenerName(m["client_listener_resource_name_template"], a.Template)
	}
	return a
}

// template judges the template for targets without an authority, or for gRPC servers.
func (p *parser) template(c *Config, v value, template string) {
	if !strings.HasPrefix(template, newStyle) || !p.listenerName(v, template) {
		return
	}
	name, _, _ := splitName(template)
	if _, ok := c.Authorities[name]; !ok && !strings.Contains(name, "%s") {
		p.refuse(v.path, fmt.Sprintf("the template has the authority %q, which authorities "+
			"does not have", name), fmt.Sprintf(`write "authorities": {%q: {}}`, name))
	}
}

// listenerName judges whether a new-style template gives names of listeners.
func (p *parser) listenerName(v value, template string) bool {
	_, of, ok := splitName(template)
	if !ok || of != listenerType {
		p.refuse(v.path, "the template makes no names of listeners: clients on C-core "+
			"can't parse them", fmt.Sprintf("write xdstp://AUTHORITY/%s/%%s", listenerType))
		return false
	}
	return true
}

// splitName returns the authority and the type in a new-style name.
func splitName(name string) (authority, of string, ok bool) {
	authority, of, rest, ok := xdstp.Split(name)
	if plain, err := url.PathUnescape(authority); err == nil {
		authority = plain
	}
	return authority, of, ok && strings.HasPrefix(rest, "/")
}
