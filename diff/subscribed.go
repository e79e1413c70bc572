package diff

import (
	"xdspub/xds"
)

// subscriber is a place in a published resource that asks for another.
type subscriber struct {
	xds.Subscription
	node *xds.Node
	in   *xds.Resource
}

// What asks for secrets, and for extension configs.
var (
	secretUsers    = xds.NewSearch("envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig")
	extensionUsers = xds.NewSearch("envoy.config.core.v3.ExtensionConfigSource")
)

// subscribers are the places in published resources that ask for published
// resources of a type.
func (p *Pass) subscribers(t *xds.Type, search *xds.Search) ([]subscriber, error) {
	if len(p.New.Of(t)) == 0 {
		return nil, nil // nothing of the type can change
	}
	var list []subscriber
	for _, from := range []*xds.Type{xds.Cluster, xds.Listener, xds.ExtensionConfig} {
		published, err := p.Old.Of(from)
		if err != nil {
			return nil, err
		}
		for _, r := range published {
			search.Walk(r.Message, func(n *xds.Node) {
				s, ok := n.Subscription()
				if ok && s.Target == t && xds.PathOf(s.Source) == p.Old.Path(t, s.Name) && !n.InMetadata() {
					list = append(list, subscriber{s, n, r})
				}
			})
		}
	}
	return list, nil
}
