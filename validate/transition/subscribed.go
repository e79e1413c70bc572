package transition

import (
	"xdspub/xds"
)

// subscribers returns the subscriptions of published resources to published resources of a type. If the new
// Snapshot has no resource of the type, it returns none.
func (p *Pass) subscribers(t *xds.Type) ([]xds.Subscriber, error) {
	if len(p.New.Of(t)) == 0 {
		return nil, nil // no rule looks at a removed resource
	}
	var list []xds.Subscriber
	for _, from := range []*xds.Type{xds.Cluster, xds.Listener, xds.ExtensionConfig} {
		published, err := p.Old.Of(from)
		if err != nil {
			return nil, err
		}
		for _, r := range published {
			if !r.AsksFor(t) {
				continue
			}
			for _, s := range r.Facts().Subscriptions {
				if s.Target == t && p.Old.Serves(s) && !s.Node.InMetadata() {
					list = append(list, xds.Subscriber{Subscription: s, Resource: r})
				}
			}
		}
	}
	return list, nil
}
