package diff

import (
	"xdspub/xds"
)

// subscriber is a place in a published resource that asks for another.
type subscriber struct {
	xds.Subscription
	in *xds.Resource
}

// subscribers returns the places in published resources that ask for published
// resources of a type.
func (p *Pass) subscribers(t *xds.Type) ([]subscriber, error) {
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
			for _, s := range r.Facts().Subscriptions {
				if s.Target == t && xds.PathOf(s.Source) == p.Old.Path(t, s.Name) && !s.Node.InMetadata() {
					list = append(list, subscriber{s, r})
				}
			}
		}
	}
	return list, nil
}
