// Package diff compares two Snapshots: the fields that differ, and the effects of the difference on an Envoy that
// runs the first Snapshot and gets the second one.
//
//	d := diff.Compare(was, is)
//	err := d.WriteText(os.Stdout, diff.TextOptions{})
//
// Equal content has no difference, whatever its format, place and order of resources. Package diff shows no secret: a
// secret is shown as the beginning of its SHA-256 hash, a certificate by its subject, serial number and end.
//
// The effects are facts of Envoy 1.40.0, which tests ask the real Envoy.
package diff

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Change is a kind of difference.
type Change string

// The kinds of difference. Only an element of a list is Moved.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
	Moved   Change = "moved"
)

// Diff is the difference between two Snapshots.
type Diff struct {
	// Resources are the resources that differ, in the order of xds.Types, then by name.
	Resources []Resource `json:"resources"`
	// Effects are the effects on an Envoy, in the order of their Kinds, then by resource.
	Effects []Effect `json:"effects"`
	// Omitted counts the fields beyond mostFields.
	Omitted int `json:"omitted_fields"`
}

// Resource is a resource that differs.
type Resource struct {
	// Type is the short name of the type, such as CDS.
	Type   string  `json:"type"`
	Name   string  `json:"name"`
	Change Change  `json:"change"`
	Fields []Field `json:"fields"`

	key xds.Key
}

// Field is a field that differs. If only one Snapshot has a resource, each set field of the resource differs.
type Field struct {
	// Path is the place of the field in the second Snapshot; in the first Snapshot, if the field is removed.
	Path xds.Path `json:"path"`
	// WasPath is the place in the first Snapshot if it is not Path.
	WasPath xds.Path `json:"was_path,omitempty"`
	// Label is Path with the names of list elements in place of their numbers; empty if it equals Path.
	Label  string `json:"label,omitempty"`
	Change Change `json:"change"`
	// Was and Is are the values as JSON, cut to mostValue bytes; empty for an absent field.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
	// Default is the value that an absent field stands for; empty if it is not known.
	Default string `json:"default,omitempty"`
}

// Empty reports whether the two Snapshots have the same resources.
func (d *Diff) Empty() bool { return len(d.Resources) == 0 }

// Count returns the number of resources with a kind of difference.
func (d *Diff) Count(c Change) (n int) {
	for _, r := range d.Resources {
		if r.Change == c {
			n++
		}
	}
	return n
}

const (
	// mostFields bounds the fields of a Diff. mostValue bounds the text of a value, in bytes.
	mostFields = 100_000
	mostValue  = 1000
)

// Compare returns the difference between two Snapshots. Of resources that share a Key, Compare looks at the first. If
// xds.Snapshot.Apply made is of was, the time depends on the number of changed resources alone.
func Compare(was, is *xds.Snapshot) *Diff {
	s := newSides(was, is)
	edits := s.edits()
	d := &Diff{Resources: []Resource{}, Effects: effects(s, edits)}
	left := mostFields
	for _, e := range edits {
		k := e.Key()
		r := Resource{Type: k.Type.API, Name: k.Name, Change: Changed, key: k}
		switch {
		case e.Was == nil:
			r.Change = Added
		case e.Is == nil:
			r.Change = Removed
		}
		fields := fieldsOf(e)
		n := min(len(fields), left)
		left -= n
		d.Omitted += len(fields) - n
		r.Fields = fields[:n]
		d.Resources = append(d.Resources, r)
	}
	return d
}

// sides are the two Snapshots of a comparison.
type sides struct {
	was, is *xds.Snapshot
	// byAssignment maps, for each Snapshot, the name of an endpoint assignment to the first cluster that gets it.
	// Only clusterOf fills byAssignment.
	byAssignment map[*xds.Snapshot]map[string]*xds.Resource
}

func newSides(was, is *xds.Snapshot) *sides {
	return &sides{was, is, make(map[*xds.Snapshot]map[string]*xds.Resource)}
}

// edits returns the resources that differ in the form in which a client gets them, in the order of xds.Types, then by
// name.
func (s *sides) edits() (list []xds.Edited) {
	delta := s.is.Diff(s.was)
	byKey := make(map[xds.Key]xds.Edited)
	for _, r := range delta.Added {
		byKey[r.Key] = xds.Edited{Is: delivered(s.is, r)}
	}
	for _, r := range delta.Removed {
		byKey[r.Key] = xds.Edited{Was: delivered(s.was, r)}
	}
	for _, r := range delta.Changed {
		byKey[r.Key] = xds.Edited{Was: delivered(s.was, s.was.Lookup(r.Type, r.Name)), Is: delivered(s.is, r)}
	}
	for _, t := range xds.Types {
		var names []string
		for k := range byKey {
			if k.Type == t {
				names = append(names, k.Name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if e := byKey[xds.Key{Type: t, Name: name}]; !e.Same() {
				list = append(list, e)
			}
		}
	}
	return list
}

// delivered returns a resource with one spelling of the config sources that the Snapshot answers: ads, self and, for
// some types, no config source lead to the same resources.
func delivered(s *xds.Snapshot, r *xds.Resource) *xds.Resource {
	if !slices.ContainsFunc(r.Facts().Subscriptions, s.Serves) {
		return r
	}
	is := r.With(proto.Clone(r.Message()))
	is.Edit(func(n *xds.Node) bool {
		sub, ok := n.Subscription()
		if ok && s.Serves(sub) {
			sub.Set(fromSnapshot(sub.Source))
			return true
		}
		return false
	})
	return is
}
