package reference

import (
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var duplicateResource = &validate.Rule{
	Code: "duplicate-resource",
	Doc: `Two resources of one type have the same name.

Envoy keeps the first of two clusters or listeners and rejects the update
("duplicate cluster a found"); a file of endpoints, routes or a secret must hold
exactly one resource, and is refused as a whole. Two listeners without a name are two of
the same in a file of LDS, and stand side by side in a bootstrap. Static secrets of
different kinds may share a name.`,
	ByName: true,
	Snapshot: func(p *validate.SnapshotPass) {
		for _, t := range xds.Types {
			firsts := make(map[delivered]*xds.Resource)
			for _, r := range p.Snapshot.Of(t) {
				if r.Name == "" && !sharesNoName(&p.LookupPass, r) {
					continue // name-missing
				}
				key := delivered{name: r.Name, via: r.DeliveredBy}
				if s, ok := r.Message.(*tlsv3.Secret); ok && r.DeliveredBy == xds.StaticResources {
					key.kind = xds.SecretKind(s)
				}
				first := firsts[key]
				if first == nil {
					firsts[key] = r
					continue
				}
				p.Report(validate.Finding{
					Resource: r,
					Path:     xds.Path(t.Name),
					Message:  fmt.Sprintf("%s is defined twice", r.Key),
					Help:     "remove or rename one of them",
					Related:  facts.Related(first, xds.Path(t.Name), "first defined here"),
				})
			}
		}
	},
}

// sharesNoName reports whether Envoy takes two resources that have no name, where this one
// comes from, for one.
func sharesNoName(p *validate.LookupPass, r *xds.Resource) bool {
	static := r.DeliveredBy == xds.StaticResources
	return p.Snapshot.FromBootstrap() && (r.Type == xds.Listener && !static || r.Type == xds.Secret && static)
}

// delivered is a resource's name, and what delivers it: Envoy takes a cluster of
// the name of a static one for that, and EDS, RDS and SDS files each have their own.
type delivered struct {
	name, via string
	kind      protoreflect.Name // of a static secret
}
