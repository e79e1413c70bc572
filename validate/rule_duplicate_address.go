package validate

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

var duplicateAddress = &Rule{
	Code: "duplicate-address",
	Doc: `Two listeners have the same address.

Envoy refuses the second ("has duplicate address … as existing listener"): the
same IP address in any spelling, port, protocol and network namespace, or the same
pipe, among all addresses of a listener; also with bind_to_port: false, and
whatever enable_reuse_port says. 0.0.0.0 and 127.0.0.1 are two addresses, UDP and
TCP are apart, and port 0 is a new one each time.`,
	Snapshot: func(p *Pass) {
		seen := make(map[xds.Socket]place)
		for _, r := range p.Snapshot.Of(xds.Listener) {
			if r.Name != "" && p.Snapshot.Lookup(r.Type, r.Name) != r {
				continue // duplicate-resource
			}
			l := r.Message.(*listenerv3.Listener)
			check := func(a *corev3.Address, path xds.Path) {
				s, ok := xds.SocketOf(a)
				if !ok {
					return
				}
				first, twice := seen[s]
				if !twice {
					seen[s] = place{r, path}
					return
				}
				if first.Resource == r {
					return // Envoy binds it twice
				}
				p.Report(Finding{
					Resource: r,
					Path:     path,
					Message:  fmt.Sprintf("address %s belongs to another listener too", s),
					Help:     "give each listener an address of its own; one listener can have several filter chains",
					Related:  related(first.Resource, first.path, fmt.Sprintf("listener %q has it", first.Name)),
				})
			}
			check(l.GetAddress(), "address")
			for i, a := range l.GetAdditionalAddresses() {
				check(a.GetAddress(), xds.Path("additional_addresses").Index(i).Field("address"))
			}
		}
	},
}
