package transition

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

var allListenersRemoved = &Rule{
	Code:   "all-listeners-removed",
	Guards: true,
	Doc: `A change removes all listeners.

Envoy accepts the change, and closes all its ports. A listener counts as removed if no listener has
its name or one of its addresses. A server judges the change for each kind of connected clients, and
for each client that asks for listeners by name. xdspub approve lets one such change
through, and --allow-removal all of them.`,
	Run: func(p *Pass) error {
		published, err := p.Old.Of(xds.Listener)
		if err != nil || len(published) == 0 {
			return err
		}
		var names []string
		var keys []xds.Key
		for _, r := range published {
			if p.New.Lookup(xds.Listener, r.Name) != nil {
				return nil
			}
			names, keys = append(names, r.Name), append(keys, r.Key)
		}
		if p.keepsAddress(published) {
			return nil
		}
		p.refuse(keys, Finding{
			Message: fmt.Sprintf("the change removes all listeners (%d): %s; all requests would fail", len(names), named(names)),
		})
		return nil
	},
}

// keepsAddress reports whether a new listener has an address of a published listener.
func (p *Pass) keepsAddress(published []*xds.Resource) bool {
	taken := make(map[xds.Socket]bool)
	for _, r := range p.New.Of(xds.Listener) {
		for _, s := range xds.Sockets(r.Message().(*listenerv3.Listener)) {
			taken[s] = true
		}
	}
	for _, r := range published {
		for _, s := range xds.Sockets(r.Message().(*listenerv3.Listener)) {
			if taken[s] {
				return true
			}
		}
	}
	return false
}
