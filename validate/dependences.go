package validate

import (
	"maps"
	"slices"

	"xdspub/xds"
)

// Dependences tells on which variants of resources a Call depends. The Judge must judge Snapshots with at most one
// variant of each resource.
type Dependences struct {
	judge     *Judge
	variants  []*xds.Resource // in the order of allTypes, then by name
	byKey     map[xds.Key][]*xds.Resource
	byIndex   map[anyIndex]map[string][]*xds.Resource
	collected map[string][]*xds.Resource // by the code of a rule with Snapshot
	known     map[asked]*Groups
}

// asked is a question of a Call. For a question of Index.First, first is the resource of the answer.
type asked struct {
	question
	first *xds.Resource
}

// Groups are sets of variants. The answer to a lookup depends only on which of the sets have a variant in the
// Snapshot.
type Groups struct{ Of [][]*xds.Resource }

// Dependences returns the Dependences on some variants.
func (j *Judge) Dependences(variants []*xds.Resource) *Dependences {
	d := &Dependences{
		judge: j, variants: slices.Clone(variants), byKey: make(map[xds.Key][]*xds.Resource),
		byIndex: make(map[anyIndex]map[string][]*xds.Resource), collected: make(map[string][]*xds.Resource), known: make(map[asked]*Groups),
	}
	slices.SortStableFunc(d.variants, func(a, b *xds.Resource) int { return byKey(a.Key, b.Key) })
	for _, r := range d.variants {
		d.byKey[r.Key] = append(d.byKey[r.Key], r)
	}
	return d
}

// Judged adds a variant that the last Run judged. Groups of SnapshotCalls are right only after all variants were
// added.
func (d *Dependences) Judged(r *xds.Resource) {
	gathered := d.judge.kept[r].gathered
	for _, rule := range d.judge.rules {
		if slices.ContainsFunc(gathered, func(o Occurrence) bool { return slices.Contains(rule.Collect, o.Node.Name()) }) {
			d.collected[rule.Code] = append(d.collected[rule.Code], r)
		}
	}
}

// Groups returns the Groups of the lookups of a Call in the last Run. Equal lookups with equal answers share a
// pointer.
func (d *Dependences) Groups(c Call) (list []*Groups) {
	if c.Sampled {
		return []*Groups{{each(d.variants)}}
	}
	for _, q := range c.asked {
		is := asked{q, nil}
		if q.about == aboutFirst {
			is.first = q.index.(lister).firstResource(d.answers(), q.name)
		}
		g, known := d.known[is]
		if !known {
			if of := d.of(is); len(of) > 0 {
				g = &Groups{of}
			}
			d.known[is] = g
		}
		if g != nil {
			list = append(list, g)
		}
	}
	return list
}

// answers returns the answers of the last Run.
func (d *Dependences) answers() *answers {
	m := d.judge.memory
	return &answers{Snapshot: m.snapshot, options: d.judge.options, made: m.made}
}

// of returns the groups of a question.
func (d *Dependences) of(q asked) [][]*xds.Resource {
	switch q.about {
	case aboutComplete: // the answer depends on Options alone
		return nil
	case aboutResource, aboutNamed:
		return each(d.byKey[xds.Key{Type: q.t, Name: q.name}])
	case aboutPresence:
		if list := d.byKey[xds.Key{Type: q.t, Name: q.name}]; list != nil {
			return [][]*xds.Resource{list}
		}
		return nil
	case aboutType:
		return each(slices.DeleteFunc(slices.Clone(d.variants), func(r *xds.Resource) bool { return r.Type != q.t }))
	case aboutCollected:
		return each(d.collected[q.name])
	case aboutTable:
		return q.index.(*Table).dependsOn(d)
	}
	list := d.entries(q.index)[q.name]
	if q.first != nil { // resources after the first can't change the answer
		list = slices.DeleteFunc(slices.Clone(list), func(r *xds.Resource) bool { return byKey(r.Key, q.first.Key) > 0 })
	}
	return each(list)
}

// entries returns, by name, the variants with an entry in an Index.
func (d *Dependences) entries(x anyIndex) map[string][]*xds.Resource {
	if d.byIndex[x] == nil {
		d.byIndex[x] = x.(lister).entriesOf(d.variants)
	}
	return d.byIndex[x]
}

// lister is an Index with entries of any type.
type lister interface {
	// entriesOf returns, by name, the variants with an entry.
	entriesOf(variants []*xds.Resource) map[string][]*xds.Resource
	// firstResource returns the resource of the first entry under a name, or nil.
	firstResource(a *answers, name string) *xds.Resource
}

// each returns a group for each resource.
func each(list []*xds.Resource) (groups [][]*xds.Resource) {
	for _, r := range list {
		groups = append(groups, []*xds.Resource{r})
	}
	return groups
}

// dependsOn returns the groups of the names that the Table depends on.
func (t *Table) dependsOn(d *Dependences) (groups [][]*xds.Resource) {
	keys := slices.SortedFunc(maps.Keys(d.byKey), byKey)
	for _, k := range keys {
		if slices.Contains(t.types, k.Type) {
			groups = append(groups, d.byKey[k])
		}
	}
	entries := make(map[*xds.Resource]bool)
	for _, x := range t.indexes {
		for _, list := range d.entries(x) {
			for _, r := range list {
				entries[r] = true
			}
		}
	}
	for _, r := range d.variants {
		if entries[r] {
			groups = append(groups, []*xds.Resource{r})
		}
	}
	return groups
}

func (x *Index[E]) entriesOf(variants []*xds.Resource) map[string][]*xds.Resource {
	entries := make(map[string][]*xds.Resource)
	for _, r := range variants {
		if !x.readsType(r.Type) {
			continue
		}
		x.find(xds.NewSnapshot([]*xds.Resource{r}), r, func(name string, _ E) {
			if list := entries[name]; len(list) == 0 || list[len(list)-1] != r {
				entries[name] = append(list, r)
			}
		})
	}
	return entries
}

func (x *Index[E]) firstResource(a *answers, name string) *xds.Resource {
	if list := x.of(a).byName[name].of; len(list) > 0 {
		return list[0]
	}
	return nil
}
