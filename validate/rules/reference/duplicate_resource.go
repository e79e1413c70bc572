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
	Doc: `Two resources of a type share a name.

Of two clusters or listeners with one name Envoy keeps the first, and rejects the update
("duplicate cluster a found"). A file of endpoints, routes or a secret must hold exactly one
resource, and is rejected as a whole. Two listeners without a name count as duplicates in an
LDS file, and are allowed in a bootstrap. Static secrets of different kinds may share a name.`,
	Resource: func(p *validate.LookupPass) {
		r := p.Resource
		if r.Name == "" && !sharesNoName(p, r) {
			return // reported by name-missing
		}
		is := deliveryOf(r)
		for _, first := range p.Namesakes() {
			switch {
			case first == r:
				return
			case deliveryOf(first) == is:
				p.Report(validate.Finding{
					Path:    xds.Path(r.Type.Name),
					Message: fmt.Sprintf("%s is defined twice", r.Key),
					Help:    "remove or rename one of them",
					Related: facts.Related(first, xds.Path(r.Type.Name), "the first definition is here"),
				})
				return
			}
		}
	},
}

// sharesNoName reports whether Envoy treats resources like r without a name as the same resource.
func sharesNoName(p *validate.LookupPass, r *xds.Resource) bool {
	static := r.DeliveredBy == xds.StaticResources
	return p.Snapshot.FromBootstrap() && (r.Type == xds.Listener && !static || r.Type == xds.Secret && static)
}

// delivery tells how Envoy gets a resource. For Envoy, a cluster from a file is the same as a static cluster of its
// name. EDS, RDS and SDS files do not share resources.
type delivery struct {
	via  string
	kind protoreflect.Name // the kind of a static secret
}

func deliveryOf(r *xds.Resource) delivery {
	d := delivery{via: r.DeliveredBy}
	if s, ok := r.Message().(*tlsv3.Secret); ok && r.DeliveredBy == xds.StaticResources {
		d.kind = xds.SecretKind(s)
	}
	return d
}
