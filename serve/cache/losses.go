package cache

import (
	"maps"
	"slices"
	"strings"

	"xdspub/xds"
	"xdspub/xds/variants"
)

// losses returns the losses of clients that ask for listeners by name, as gRPC clients do: a Tree would leave these
// clients without any of their listeners. Clients that lose the same listeners share a Transition.
func (c *Cache) losses(tree *variants.Tree) []variants.Transition {
	lost := make(map[string]variants.Transition)
	for _, of := range c.classes {
		for _, v := range of.views {
			for _, s := range v.all() {
				node, had := s.ownListeners(c.tree.All())
				if len(had) == 0 {
					continue
				}
				if _, has := s.ownListeners(tree.All()); len(has) > 0 {
					continue
				}
				key := strings.Join(namesOf(had), "\n")
				t := lost[key]
				if t.From == nil {
					t = variants.Transition{Parameters: of.of, From: xds.NewSnapshot(had), To: xds.NewSnapshot(nil)}
				}
				t.Clients = append(t.Clients, node)
				lost[key] = t
			}
		}
	}
	var list []variants.Transition
	for _, key := range slices.Sorted(maps.Keys(lost)) {
		slices.Sort(lost[key].Clients)
		list = append(list, lost[key])
	}
	return list
}

// namesOf returns the sorted names of resources.
func namesOf(list []*xds.Resource) []string {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name
	}
	slices.Sort(names)
	return names
}

// ownListeners returns the node of the client, and the listeners of a Snapshot with all variants that the client
// asks for by name. If the client asks for all listeners, or has several parameter sets, ownListeners returns none.
func (s *Stream) ownListeners(all *xds.Snapshot) (node string, own []*xds.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscriptions[xds.Listener]
	if s.gone || sub == nil || sub.wildcard || sub.several != nil {
		return "", nil
	}
	for name := range sub.names {
		named := all.Named(xds.Key{Type: xds.Listener, Name: name})
		for _, r := range append(slices.Clone(named), membersOf(all.Of(xds.Listener), name)...) {
			if r.For.Matches(s.params) {
				own = append(own, r)
			}
		}
	}
	return s.client.Node, own
}
