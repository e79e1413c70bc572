package transition

import (
	"xdspub/xds"
)

// subscribers returns the places in published resources that ask for published
// resources of a type.
func (p *Pass) subscribers(t *xds.Type) ([]xds.Subscriber, error) {
	if len(p.New.Of(t)) == 0 {
		return nil, nil // nothing of the type can change
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
