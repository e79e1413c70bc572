package part

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/source/owners"
	"xdspub/xds"
)

// Tree is a refused source tree whose folders have owners (package owners).
type Tree struct {
	// Live is the published snapshot, and Read is the source tree.
	Live, Read *xds.Snapshot
	Folders    owners.Folders
	// Faults are the errors for which the source tree is refused, without those that Judge returns for Read.
	Faults diag.List
	// Rejected are owners whose folders wait. Envoys or clients have rejected the folder, and it has not changed since;
	// or the clients of its files are unknown.
	Rejected []string
	// Judge returns the errors of a Snapshot, in which the folders of held owners have their last valid resources.
	Judge func(mixed *xds.Snapshot, held []string) (diag.List, error)
}

// Settled is the result of Settle.
type Settled struct {
	// Snapshot has the resources of Tree.Live for the held owners, and the resources of Tree.Read for all others. If
	// Tree.Live has the same resources, Snapshot is Tree.Live.
	Snapshot *xds.Snapshot
	// Held are the owners whose folders keep their last valid resources, sorted.
	Held []string
	// Waits is why nothing of the Tree can be published; empty if Snapshot can.
	Waits string
}

// Settle holds the folders that cause errors, and further ones until no error is left. An error of shared files, or an
// error that stays although all concerned folders are held, refuses the whole Tree.
func (t *Tree) Settle() (Settled, error) {
	held, changed := make(map[string]bool), Changed(t.Live, t.Read)
	for _, owner := range t.Rejected {
		held[owner] = true
	}
	for _, d := range t.Faults {
		blamed := t.blamed(d, changed)
		if len(blamed) == 0 {
			return Settled{Waits: "an error is outside of the folders of owners: " + d.String()}, nil
		}
		for _, owner := range blamed {
			held[owner] = true
		}
	}
	for {
		m, names := t.mixed(held), slices.Sorted(maps.Keys(held))
		if m.waits != "" {
			return Settled{Waits: m.waits}, nil
		}
		if len(m.more) > 0 {
			maps.Copy(held, m.more)
			continue
		}
		s := Settled{Snapshot: m.snapshot(), Held: names}
		if s.Snapshot == t.Live {
			return s, nil
		}
		wrong, err := t.Judge(s.Snapshot, names)
		if err != nil || len(wrong) == 0 {
			return s, err
		}
		for _, d := range wrong {
			for _, owner := range t.ownersToHold(d, changed, held) {
				held[owner] = true
			}
		}
		if len(held) > len(names) {
			continue
		}
		if len(names) == 0 {
			return Settled{Waits: "an error is outside of the folders of owners: " + wrong[0].String()}, nil
		}
		return Settled{Waits: fmt.Sprintf("with %s as last valid, the source tree has errors: %s", strings.Join(names, ", "), wrong[0])}, nil
	}
}

// ownersToHold returns the owners whose folders must wait because of an error: the owners whose folders cause the
// error. If all of their folders wait already, ownersToHold returns all owners that the error involves.
func (t *Tree) ownersToHold(d diag.Diagnostic, changed, held map[string]bool) []string {
	if blamed := t.blamed(d, changed); slices.ContainsFunc(blamed, func(owner string) bool { return !held[owner] }) {
		return blamed
	}
	return t.Involved(d)
}

// Changed returns the owners whose resources differ in two Snapshots.
func Changed(a, b *xds.Snapshot) map[string]bool {
	owners := make(map[string]bool)
	for _, pair := range [][2]*xds.Snapshot{{a, b}, {b, a}} {
		for _, r := range pair[0].All() {
			if !owners[r.Owner] && !slices.ContainsFunc(pair[1].Named(r.Key), func(other *xds.Resource) bool { return same(r, other) }) {
				owners[r.Owner] = true
			}
		}
	}
	return owners
}

// blamed returns the owners whose folders cause an error. If an error involves several owners, blamed prefers owners
// whose folders have changed, and leaves out the owner of the live resource: nobody can hold another folder by claiming
// its names.
func (t *Tree) blamed(d diag.Diagnostic, changed map[string]bool) []string {
	all := t.Involved(d)
	if few := slices.DeleteFunc(slices.Clone(all), func(owner string) bool { return !changed[owner] }); len(few) > 0 {
		all = few
	}
	if of := keyOf(d); of.Type != nil && len(all) > 1 {
		for _, r := range t.Live.Named(of) {
			if rest := slices.DeleteFunc(slices.Clone(all), func(owner string) bool { return owner == r.Owner }); len(rest) > 0 {
				all = rest
			}
		}
	}
	return all
}

// Involved returns the owners of the places of a finding. The owner of a place in published files is that of the
// resource.
func (t *Tree) Involved(d diag.Diagnostic) (list []string) {
	add := func(owner string) {
		if owner != "" && !slices.Contains(list, owner) {
			list = append(list, owner)
		}
	}
	if add(t.Folders.Of(d.File)); len(list) == 0 {
		if k := keyOf(d); k.Type != nil {
			of := t.Read.Named(k)
			if len(of) == 0 {
				of = t.Live.Named(k)
			}
			for _, r := range of {
				add(r.Owner)
			}
		}
	}
	for _, r := range d.Related {
		add(t.Folders.Of(r.File))
	}
	return list
}

// keyOf returns the Key of the resource that a finding is about; the zero Key for none.
func keyOf(d diag.Diagnostic) xds.Key {
	if t := xds.TypeOfURL(d.Resource.Type); t != nil {
		return xds.Key{Type: t, Name: d.Resource.Name}
	}
	return xds.Key{}
}

// mix is a Snapshot of the resources of Tree.Read, and of those of Tree.Live for held owners.
type mix struct {
	*Tree
	held map[string]bool
	is   map[xds.Key][]*xds.Resource
	keys []xds.Key // of is
	// more are further owners to hold: a name moves between their folders and held ones.
	more map[string]bool
	// waits is why there is no mix: a name moves between shared files and a held folder.
	waits string
}

// mixed returns the mix for held owners.
func (t *Tree) mixed(held map[string]bool) *mix {
	m := &mix{Tree: t, held: held, is: make(map[xds.Key][]*xds.Resource), more: make(map[string]bool)}
	for _, r := range t.Live.All() {
		if held[r.Owner] {
			m.add(r)
		}
	}
	for _, r := range t.Read.All() {
		if !held[r.Owner] {
			m.add(r)
		}
	}
	for _, k := range m.keys {
		m.findClaims(k)
	}
	for _, r := range t.Read.All() {
		if held[r.Owner] {
			m.findMoves(r)
		}
	}
	return m
}

func (m *mix) add(r *xds.Resource) {
	if m.is[r.Key] == nil {
		m.keys = append(m.keys, r.Key)
	}
	m.is[r.Key] = append(m.is[r.Key], r)
}

// findClaims finds owners that have taken the name of a held resource.
func (m *mix) findClaims(k xds.Key) {
	if !slices.ContainsFunc(m.is[k], func(r *xds.Resource) bool { return m.held[r.Owner] }) {
		return
	}
	for _, r := range m.is[k] {
		if !m.held[r.Owner] && !owns(m.Live.Named(k), r.Owner) {
			m.hold(r.Owner, k)
		}
	}
}

// findMoves finds owners that have given up the name of a resource, which a held folder has now.
func (m *mix) findMoves(r *xds.Resource) {
	for _, was := range m.Live.Named(r.Key) {
		if !m.held[was.Owner] && !owns(m.is[r.Key], was.Owner) {
			m.hold(was.Owner, r.Key)
		}
	}
}

func (m *mix) hold(owner string, k xds.Key) {
	if owner != "" {
		m.more[owner] = true
	} else if m.waits == "" {
		m.waits = fmt.Sprintf("%s moves between shared files and a folder with errors", k)
	}
}

// owns reports whether an owner has a resource in a list.
func owns(list []*xds.Resource, owner string) bool {
	return slices.ContainsFunc(list, func(r *xds.Resource) bool { return r.Owner == owner })
}

// snapshot returns the mix as a Snapshot. If Tree.Live has the same resources, snapshot returns Tree.Live.
func (m *mix) snapshot() *xds.Snapshot {
	var c xds.Change
	alike := true
	for _, k := range m.keys {
		was, is := m.Live.Named(k), m.is[k]
		if !slices.Equal(was, is) {
			alike = alike && slices.EqualFunc(was, is, same)
			c.Removed, c.Added = append(c.Removed, was...), append(c.Added, is...)
		}
	}
	for _, r := range m.Live.All() {
		if m.is[r.Key] == nil {
			c.Removed, alike = append(c.Removed, r), false
		}
	}
	if alike {
		return m.Live
	}
	return m.Live.Apply(c)
}

// same reports whether two resources of a Key have the same content, clients and owner.
func same(a, b *xds.Resource) bool { return a.Same(b) && a.ForSame(b) && a.Owner == b.Owner }
