package cache

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// refusal is a NACK.
type refusal struct {
	of *xds.Type
	// state is the number of the response's state; -1 for a state of another view, 0 over REST. version is
	// the version of the response. names are the resources that the response has or removes, changed the
	// resources among them that were new to the client.
	state   int
	version string
	names   []string
	changed []*xds.Resource
	message string // of the client; may be empty
	time    time.Time
	// found caches the findings about a NACK of a REST client.
	found diag.List
}

// meant returns the names that the client means: the names in its message, or else all names.
func (r *refusal) meant() []string {
	named := slices.DeleteFunc(slices.Clone(r.names), func(name string) bool { return !mentions(r.message, plain(name)) })
	if len(named) == 0 {
		return r.names
	}
	return named
}

// mostBlamed is the largest number of resources in the findings of a refusal.
const mostBlamed = 10

// places caches the positions of refused resources in the source tree. Many clients refuse the same
// resources, and finding a position parses a file.
type places struct {
	mu sync.Mutex
	of map[*xds.Resource]diag.Diagnostic
}

// at returns a finding for a resource, without a message.
func (p *places) at(r *xds.Resource) diag.Diagnostic {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.of[r]
	if !ok {
		d = r.Diagnostic(clients.RefusedByClient.Name, "", "")
		d.Severity = clients.RefusedByClient.Severity
		if p.of == nil {
			p.of = make(map[*xds.Resource]diag.Diagnostic)
		}
		p.of[r] = d
	}
	return d
}

// forget removes all cached positions.
func (p *places) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of = nil
}

// findings returns findings for the first mostBlamed changed resources that the client means, or else a
// finding for their type. client names the client in the messages.
func (r *refusal) findings(client string, places *places) diag.List {
	list, meant := diag.List{}, r.meant()
	for _, blamed := range r.changed {
		if !slices.Contains(meant, blamed.Name) {
			continue
		}
		if len(list) == mostBlamed {
			break
		}
		d := places.at(blamed)
		d.Resource.Name = plain(d.Resource.Name)
		d.Message = fmt.Sprintf("%s rejected %s %q: %s", client, r.of.API, d.Resource.Name, r.reason())
		list = append(list, d)
	}
	if len(list) == 0 { // such as a response with removals only
		list = append(list, diag.Diagnostic{Code: clients.RefusedByClient.Name, Severity: clients.RefusedByClient.Severity,
			Resource: diag.Resource{Type: r.of.URL()}, Message: fmt.Sprintf("%s rejected %s: %s", client, r.of.API, r.reason())})
	}
	return list.Sort()
}

// reason returns the client's message, or a text if the message is empty.
func (r *refusal) reason() string {
	if r.message == "" {
		return "the client gives no reason"
	}
	return r.message
}

// mentions reports whether a text contains a name as a whole word.
func mentions(text, name string) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-/", r) }
	for at := 0; name != ""; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(name)
		before := strings.TrimRightFunc(text[:from], inWord) == text[:from]
		after := strings.TrimLeftFunc(text[to:], inWord) == text[to:]
		if before && after {
			return true
		}
		at = to
	}
	return false
}
