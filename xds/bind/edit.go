package bind

import (
	"slices"
	"strings"

	"xdspub/xds"
)

// Edit binds s, which differs by changes from the Snapshot bound last. Edit returns the bound resources that
// changed: those of changes, and those whose form depends on changes. ok is false if the Binder knows no such
// Snapshot, because Bind was not called or was ended; call Bind then.
func (b *Binder) Edit(s *xds.Snapshot, changes []xds.Edited) (changed []xds.Edited, ok bool) {
	p := b.pass
	if p == nil {
		return nil, false
	}
	inlinedScopes := p.inlinesScopes()
	p.snapshot = s
	for _, e := range changes {
		p.take(e)
	}
	reached := b.reachedBy(changes)
	if inlinedScopes != p.inlinesScopes() {
		reached = append(append(reached, s.Of(xds.ScopedRoutes)...), s.Of(xds.Listener)...)
	}
	edits, listed := slices.Clone(changes), make(map[*xds.Resource]bool)
	for _, e := range changes {
		listed[e.Was], listed[e.Is] = true, true
	}
	for _, r := range reached {
		if !listed[r] {
			edits, listed[r] = append(edits, xds.Edited{Was: r, Is: r}), true
		}
	}
	for _, e := range edits {
		if bound := b.edit(e); bound.Was != bound.Is {
			changed = append(changed, bound)
		}
	}
	return changed, true
}

// take updates the counts and groups of a pass by an edit.
func (p *pass) take(e xds.Edited) {
	if e.Key().Type.Asked == xds.InGroups {
		p.takeMember(e)
		return
	}
	if e.Was != nil {
		p.count(e.Was, -1)
	}
	if e.Is != nil {
		p.count(e.Is, 1)
	}
}

// takeMember adds a resource to its group, replaces it or removes it. The group is a new list, since dependencies
// keep the old list.
func (p *pass) takeMember(e xds.Edited) {
	name, group := e.Key().Name, groupOf(e.Key())
	members := slices.Clone(p.groups[group])
	i, found := slices.BinarySearchFunc(members, name, func(r *xds.Resource, name string) int { return strings.Compare(r.Name, name) })
	if found {
		members = slices.Delete(members, i, i+1)
	}
	if e.Is != nil {
		members = slices.Insert(members, i, e.Is)
	}
	if p.groups[group] = members; len(members) == 0 {
		delete(p.groups, group)
	}
}

// reachedBy returns the unedited resources whose form may change because of changes.
func (b *Binder) reachedBy(changes []xds.Edited) (reached []*xds.Resource) {
	users := b.usersByKey()
	for _, e := range changes {
		key := e.Key()
		switch {
		case e.Same() && e.Was.ForSame(e.Is), key.Type == xds.Secret && e.Was != nil && e.Is != nil:
			continue
		case key.Type.Asked == xds.InGroups: // and the users of key ask for the resource alone
			reached = append(reached, users[groupOf(key)]...)
		case key.Type == xds.Cluster: // its endpoint assignment may become inlined, or a resource of its own again
			for _, r := range []*xds.Resource{e.Was, e.Is} {
				if r != nil {
					reached = append(reached, b.pass.answers(xds.Key{Type: xds.Endpoints, Name: b.pass.takesIn(r)})...)
				}
			}
		}
		reached = append(reached, users[key]...)
	}
	return reached
}

// edit binds e.Is, and returns the old and the new bound resource.
func (b *Binder) edit(e xds.Edited) (is xds.Edited) {
	p, was := b.pass, b.known[e.Was]
	if was != nil {
		is.Was = was.resource
		b.forget(e.Was, was)
	}
	if e.Is == nil || p.isInside(e.Is) {
		return is
	}
	out := was
	if was == nil || !e.Same() || !e.Was.ForSame(e.Is) || !was.holdsFor(p, e.Is) {
		out = p.bindAgain(e.Is, was)
	}
	b.remember(e.Is, out)
	is.Is = out.resource
	return is
}

// forget removes a resource and its bound form from known and users.
func (b *Binder) forget(r *xds.Resource, was *bound) {
	delete(b.known, r)
	for _, d := range was.dependencies {
		users := slices.DeleteFunc(b.users[d.Key], func(user *xds.Resource) bool { return user == r })
		if b.users[d.Key] = users; len(users) == 0 {
			delete(b.users, d.Key)
		}
	}
}

// remember adds a resource and its bound form to known and users.
func (b *Binder) remember(r *xds.Resource, is *bound) {
	b.known[r] = is
	for _, d := range is.dependencies {
		b.users[d.Key] = append(b.users[d.Key], r)
	}
}

// usersByKey returns users, and fills it at the first call after a Bind.
func (b *Binder) usersByKey() map[xds.Key][]*xds.Resource {
	if b.users == nil {
		b.users = make(map[xds.Key][]*xds.Resource)
		for r, is := range b.known {
			b.remember(r, is)
		}
	}
	return b.users
}
