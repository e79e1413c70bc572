package bind

import (
	"slices"
	"strings"

	"xdspub/xds"
)

// Edit binds s, which differs from the Snapshot bound last by the edits alone. It returns the
// bound resources that differ from before: of what is edited, and of what it is inlined into.
// ok is false where that does not tell enough, and Bind is needed.
func (b *Binder) Edit(s *xds.Snapshot, edits []xds.Edited) (changed []xds.Edited, ok bool) {
	if b.pass == nil {
		return nil, false
	}
	p := *b.pass
	p.snapshot = s
	again, listed := make(map[*xds.Resource]bool), make(map[*xds.Resource]bool)
	for _, e := range edits {
		listed[e.Is] = true
		if again[e.Is] = !e.Is.Same(e.Was); again[e.Is] && !p.holdsAfter(e) {
			return nil, false
		}
	}
	for _, user := range b.usersOf(s, again) {
		if again[user] = true; !listed[user] {
			edits = append(edits, xds.Edited{Was: user, Is: user})
		}
	}
	fresh := make([]*bound, len(edits))
	for i, e := range edits {
		was := b.known[e.Was]
		switch {
		case was == nil && e.Is.Type == xds.Endpoints && p.inlined[e.Is.Name]:
			continue // it is in clusters only
		case was == nil:
			return nil, false
		case !again[e.Is]: // another one of its file was edited
			fresh[i] = was
			continue
		}
		fresh[i] = p.bind(e.Is)
		if was.resource.Same(fresh[i].resource) {
			fresh[i].resource = was.resource
			continue
		}
		changed = append(changed, xds.Edited{Was: was.resource, Is: fresh[i].resource})
	}
	b.pass = &p
	for i, is := range fresh {
		if is != nil {
			b.replace(edits[i], is)
		}
	}
	return changed, true
}

// replace keeps a resource as it is bound after an edit.
func (b *Binder) replace(e xds.Edited, is *bound) {
	had := b.known[e.Was].asked
	for _, a := range is.asked {
		if a.inlined && !slices.ContainsFunc(had, func(was answer) bool { return was.Key == a.Key }) {
			b.users = nil
		}
	}
	delete(b.known, e.Was)
	b.known[e.Is] = is
}

// usersOf returns the resources of s that any of the edited ones may be inlined into.
func (b *Binder) usersOf(s *xds.Snapshot, edited map[*xds.Resource]bool) (users []*xds.Resource) {
	for r, content := range edited {
		if !content || !b.pass.inlines(r.Type) {
			continue
		}
		for _, key := range b.usersByKey()[r.Key] {
			users = append(users, s.Named(key)...)
		}
	}
	slices.SortFunc(users, func(a, b *xds.Resource) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(users)
}

func (b *Binder) usersByKey() map[xds.Key][]xds.Key {
	if b.users == nil {
		b.users = make(map[xds.Key][]xds.Key)
		for r, bound := range b.known {
			for _, a := range bound.asked {
				if a.inlined {
					b.users[a.Key] = append(b.users[a.Key], r.Key)
				}
			}
		}
	}
	return b.users
}

// inlines reports whether resources of a type go into those that subscribe to them.
func (p *pass) inlines(t *xds.Type) bool {
	return t == xds.Endpoints && p.inline.Endpoints || t == xds.RouteConfiguration && p.inline.Routes
}

// holdsAfter reports whether what the pass knows of all resources is the same after an edit.
func (p *pass) holdsAfter(e xds.Edited) bool {
	switch e.Is.Type {
	case xds.VirtualHost, xds.ScopedRoutes:
		return false
	case xds.RouteConfiguration: // which may be in a scope, and in what names that
		return len(p.snapshot.Of(xds.ScopedRoutes))+len(p.snapshot.Of(xds.VirtualHost)) == 0
	case xds.Listener:
		return !asksForScopes(e.Was) && !asksForScopes(e.Is)
	case xds.Cluster:
		return !p.inline.Endpoints || p.inlinedInto(e.Was) == p.inlinedInto(e.Is)
	}
	return true
}

// inlinedInto returns the name of the endpoint assignment that goes into a cluster, or "".
func (p *pass) inlinedInto(cluster *xds.Resource) string {
	sub, ok := (&xds.Node{Message: cluster.Message}).Subscription()
	if !ok || !p.snapshot.Serves(sub) || p.snapshot.Lookup(xds.Endpoints, sub.Name) == nil {
		return ""
	}
	return sub.Name
}

// asksForScopes reports whether a listener asks for the route configurations of scopes.
func asksForScopes(listener *xds.Resource) bool {
	return slices.ContainsFunc(listener.Facts().Subscriptions, isForScopes)
}
