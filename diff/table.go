package diff

import (
	"net"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// table is a route configuration that answers to which target a request goes.
type table struct {
	hosts []*host
	// exact, suffixes and prefixes map domains to virtual hosts; any is the virtual host of the domain *.
	exact, suffixes, prefixes map[string]*host
	any                       *host
	ignorePort                bool
	// size is the number of routes.
	size int
	// targets are the targets of all routes, by virtual host and condition. opaque are the routes without an example.
	targets map[string]routed
	opaque  map[string]bool
	found   []request // the result of examples
}

// host is a virtual host.
type host struct {
	*routev3.VirtualHost
	routes []*matcher
}

// routed is where a request goes. host is empty if no virtual host takes the request.
type routed struct{ host, target string }

func newTable(c *routev3.RouteConfiguration) *table {
	t := &table{
		exact: make(map[string]*host), suffixes: make(map[string]*host), prefixes: make(map[string]*host),
		ignorePort: c.GetIgnorePortInHostMatching(), targets: make(map[string]routed), opaque: make(map[string]bool),
	}
	for _, h := range c.GetVirtualHosts() {
		t.add(h)
	}
	return t
}

// add adds a virtual host.
func (t *table) add(h *routev3.VirtualHost) {
	is := &host{VirtualHost: h}
	for _, r := range h.GetRoutes() {
		is.routes = append(is.routes, newMatcher(r))
	}
	t.size += len(is.routes) + 1
	t.hosts = append(t.hosts, is)
	for _, domain := range h.GetDomains() {
		domain = strings.ToLower(domain)
		switch {
		case domain == "*":
			t.any = is
		case strings.HasPrefix(domain, "*"):
			t.suffixes[domain[1:]] = is
		case strings.HasSuffix(domain, "*"):
			t.prefixes[domain[:len(domain)-1]] = is
		default:
			t.exact[domain] = is
		}
	}
}

// hostOf returns the virtual host of a Host header: an exact domain, else the longest domain *.suffix, else the
// longest prefix.*, else *.
func (t *table) hostOf(name string) *host {
	name = strings.ToLower(name)
	if t.ignorePort {
		if without, _, err := net.SplitHostPort(name); err == nil {
			name = without
		}
	}
	if h := t.exact[name]; h != nil {
		return h
	}
	for i := 1; i < len(name); i++ {
		if h := t.suffixes[name[i:]]; h != nil {
			return h
		}
	}
	for i := len(name) - 1; i > 0; i-- {
		if h := t.prefixes[name[:i]]; h != nil {
			return h
		}
	}
	return t.any
}

// notFound is the target of a request without a route.
const notFound = "response 404"

// route returns where a request goes. Routes that perhaps take the request are part of the target.
func (t *table) route(r request) routed {
	h := t.hostOf(r.host)
	if h == nil {
		return routed{"", notFound}
	}
	perchance := ""
	for _, m := range h.routes {
		switch m.matches(r) {
		case yes:
			return routed{h.GetName(), perchance + targetOf(m.Route)}
		case perhaps:
			perchance += targetOf(m.Route) + " if a condition holds, else "
		}
	}
	if h.GetMatcher() != nil {
		return routed{h.GetName(), matcherTarget(h.VirtualHost)}
	}
	return routed{h.GetName(), perchance + notFound}
}

// matcherTarget returns the target of the requests of a virtual host with a tree of matchers.
func matcherTarget(h *routev3.VirtualHost) string {
	return "the routes of a matcher " + fingerprint([]byte(canonical(h.GetMatcher().ProtoReflect())))
}

// examples returns a request for each route that it can make one for, and puts the other routes into opaque.
func (t *table) examples() []request {
	if t.found != nil {
		return t.found
	}
	for _, h := range t.hosts {
		name, ok := t.nameFor(h)
		for _, m := range h.routes {
			example, made := m.example(name)
			example.of = h.GetName() + "\x00" + m.key
			if _, twice := t.targets[example.of]; twice {
				continue // no request reaches the second of two equal conditions
			}
			t.targets[example.of] = routed{h.GetName(), targetOf(m.Route)}
			if ok && made && m.matches(example) != no {
				t.found = append(t.found, example)
			} else {
				t.opaque[example.of] = true
			}
		}
		if ok { // the request of no route: another table may send the whole host elsewhere
			t.found = append(t.found, request{method: "GET", host: name, path: "/", of: h.GetName()})
		}
	}
	return t.found
}

// nameFor returns a host name that leads to a virtual host; ok is false if none does.
func (t *table) nameFor(h *host) (name string, ok bool) {
	for _, domain := range h.GetDomains() {
		names := []string{domain}
		switch {
		case domain == "*":
			names = []string{"example.com", "any.example.org", "other.invalid"}
		case strings.HasPrefix(domain, "*"):
			names = []string{"www" + domain[1:], "any.other" + domain[1:]}
		case strings.HasSuffix(domain, "*"):
			names = []string{domain[:len(domain)-1] + "com", domain[:len(domain)-1] + "invalid"}
		}
		for _, name := range names {
			if t.hostOf(name) == h {
				return name, true
			}
		}
	}
	return "", false
}
