package cache

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// A client gets at most one variant of each resource. Clients with the same variants form a class: they get
// the same Snapshot, and share everything derived from it. A client with several parameter sets gets several
// variants (several.go).

// MostClasses is the largest number of classes. Each class costs as much as a Snapshot.
const MostClasses = 256

// class is a set of clients with the same variants, with the Snapshot that they get.
type class struct {
	// of are the dynamic parameters of a client in the class. tells identifies the class: variants.Tree.Tells
	// of its clients.
	of    params.Parameters
	tells string
	// several marks the class of clients with several parameter sets, which may get any variant.
	several bool
	// selection is the last published selection for the class; nil before the first Publish. served is the
	// selection's Snapshot with the retired resources.
	selection *variants.Selection
	served    *xds.Snapshot
	retired   map[xds.Key]retired
	views     map[form]*view
}

// retired has the variants of a resource that the Snapshot no longer has, and the time of the removal.
type retired struct {
	variants []*xds.Resource
	since    time.Time
}

// form is the encoding of resources for a client.
type form struct {
	Kind
	located  bool // the client sends resource locators, and gets resources with their constraints
	verbatim bool // verbatim in medium
}

func newClass(of params.Parameters) *class {
	return &class{of: of, retired: make(map[xds.Key]retired), views: make(map[form]*view)}
}

// split returns a new class for some clients of c, which will get other resources than c.
func (c *class) split() *class {
	s := &class{tells: c.tells, selection: c.selection, served: c.served, retired: c.retired, views: make(map[form]*view)}
	for f, v := range c.views {
		s.views[f] = v.split()
	}
	return s
}

// turn is the change of a class to its next Snapshot.
type turn struct {
	class     *class
	of        params.Parameters
	tells     string
	selection *variants.Selection
	served    *xds.Snapshot
	retired   map[xds.Key]retired
	joins     clientsOf // clients that move to the class
	still     bool      // the clients' resources don't change
}

// clientsOf are clients with the same variants.
type clientsOf struct {
	streams []*Stream
	asking  []*polled
}

// turnTo returns the turn of a class to a Tree, for clients with the Parameters of.
func (c *class) turnTo(tree *variants.Tree, of params.Parameters) *turn {
	t := &turn{class: c, of: of, tells: c.tells}
	if c.several {
		t.selection = &variants.Selection{Snapshot: tree.All()}
	} else {
		t.selection = c.selection.Then(tree, variants.Client{Parameters: of})
	}
	if c.selection == nil {
		t.served, t.retired = t.selection.Snapshot, c.retired
		return t
	}
	t.still = t.selection.Snapshot == c.selection.Snapshot
	t.served, t.retired = c.withRetired(t.selection.Snapshot)
	return t
}

// turnInPlace returns a turn of a class to the Snapshot that the class has.
func (c *class) turnInPlace() *turn {
	return &turn{class: c, of: c.of, tells: c.tells, selection: c.selection, served: c.served, retired: c.retired}
}

// turnWithout returns a turn of a class that removes some retired resources.
func (c *class) turnWithout(gone []xds.Key) *turn {
	t := c.turnInPlace()
	if t.still = len(gone) == 0; t.still {
		return t
	}
	t.retired = maps.Clone(c.retired)
	var change xds.Change
	for _, key := range gone {
		change.Removed = append(change.Removed, c.retired[key].variants...)
		delete(t.retired, key)
	}
	t.served = c.served.Apply(change)
	return t
}

// withRetired returns a Snapshot with the retired resources of the class, and the retired resources: those
// that were retired before, and those that the Snapshot drops now. A resource of a type AtOnce
// is never retired.
func (c *class) withRetired(s *xds.Snapshot) (*xds.Snapshot, map[xds.Key]retired) {
	if c.several {
		return c.allWithRetired(s)
	}
	all, now := maps.Clone(c.retired), time.Now()
	var change []xds.Edited
	for _, e := range edits(c.selection.Snapshot, s) {
		key := e.Key()
		e.Was = c.served.Lookup(key.Type, key.Name) // same content as in the selection
		if e.Is == nil && !key.Type.AtOnce {
			all[key] = retired{[]*xds.Resource{e.Was}, now}
			continue
		}
		delete(all, key)
		change = append(change, e)
	}
	if len(change) == 0 {
		return c.served, all
	}
	return c.served.Apply(xds.ChangeOf(change)), all
}

// allWithRetired is withRetired for the class of clients with several parameter sets. If a resource keeps
// another variant, a dropped variant is removed at once.
func (c *class) allWithRetired(s *xds.Snapshot) (*xds.Snapshot, map[xds.Key]retired) {
	all, now := maps.Clone(c.retired), time.Now()
	for _, r := range c.selection.Snapshot.All() {
		if !r.Type.AtOnce && len(s.Named(r.Key)) == 0 {
			all[r.Key] = retired{c.served.Named(r.Key), now}
		}
	}
	var stay xds.Change
	for key, is := range all {
		if len(s.Named(key)) > 0 {
			delete(all, key)
			continue
		}
		stay.Added = append(stay.Added, is.variants...)
	}
	return s.Apply(stay), all
}

// bind binds the turn's Snapshot in all views, without sending. bind returns false if ctx has ended.
func (t *turn) bind(ctx context.Context) bool {
	if t.still {
		return true
	}
	for _, v := range t.class.views {
		if !v.bind(ctx, t.served) {
			return false
		}
	}
	return true
}

// moveClients moves the joining clients into the class.
func (t *turn) moveClients(ps *polls) {
	t.class.of = t.of
	for _, s := range t.joins.streams {
		s.moveTo(t.class)
	}
	ps.move(t.joins.asking, t.class.views[form{Kind: REST}])
}

// store stores the turn's Snapshot in the class.
func (t *turn) store() {
	c := t.class
	c.tells, c.selection, c.served, c.retired = t.tells, t.selection, t.served, t.retired
}

// push sends the clients their changes.
func (t *turn) push(w *wait) {
	if t.still {
		t.class.pushUnchanged()
		return
	}
	for _, v := range t.class.views {
		v.push(w)
	}
}

// tellsAs reports whether a Tree divides clients into the same classes as the published Tree.
func (c *Cache) tellsAs(tree *variants.Tree) bool { return c.tree != nil && tree.TellsAs(c.tree) }

// turns returns the turns of all classes to a Tree. same is the result of tellsAs. A class whose clients need
// different variants is split. A class without clients is dropped, except classes[0].
func (c *Cache) turns(tree *variants.Tree, same bool) (list []*turn) {
	tells, asking := tellsOf(tree), c.registry.polls.byView()
	for i, of := range c.classes {
		all := of.clients(asking)
		switch {
		case i > 0 && len(all.streams)+len(all.asking) == 0:
		case same, of.several:
			list = append(list, of.turnTo(tree, of.of))
		default:
			parts := all.parts(tells, c.registry.polls)
			if i == 0 && parts[tells(of.of)] == nil {
				parts[tells(of.of)] = &part{of: of.of}
			}
			list = append(list, of.divide(tree, parts, tells(of.of))...)
		}
	}
	return list
}

// part is a set of clients with the same variants. of are the Parameters of one of them.
type part struct {
	of params.Parameters
	clientsOf
}

// clients returns the clients of a class.
func (c *class) clients(asking map[*view][]*polled) (all clientsOf) {
	for _, v := range c.views {
		all.streams = append(all.streams, v.all()...)
	}
	all.asking = asking[c.views[form{Kind: REST}]]
	return all
}

// parts divides clients by variants.Tree.Tells.
func (all clientsOf) parts(tells func(params.Parameters) string, ps *polls) map[string]*part {
	parts := make(map[string]*part)
	of := func(p params.Parameters) *part {
		is := tells(p)
		if parts[is] == nil {
			parts[is] = &part{of: p}
		}
		return parts[is]
	}
	for _, s := range all.streams {
		is := of(s.params)
		is.streams = append(is.streams, s)
	}
	for _, q := range all.asking {
		is := of(ps.parametersOf(q))
		is.asking = append(is.asking, q)
	}
	return parts
}

// divide returns the turns for the parts of a class. The class continues with the part stay, or with another
// part if stay doesn't exist. The turn of the class comes first; the other turns are for new classes.
func (c *class) divide(tree *variants.Tree, parts map[string]*part, stay string) []*turn {
	all := slices.Sorted(maps.Keys(parts))
	if parts[stay] == nil {
		stay = all[0]
	}
	first := c.turnTo(tree, parts[stay].of)
	first.tells = stay
	list := []*turn{first}
	for _, tells := range all {
		if tells != stay {
			t := c.split().turnTo(tree, parts[tells].of)
			t.tells, t.joins = tells, parts[tells].clientsOf
			list = append(list, t)
		}
	}
	return list
}

// tellsOf returns Tree.Tells with a cache.
func tellsOf(tree *variants.Tree) func(params.Parameters) string {
	known := make(map[string]string)
	return func(p params.Parameters) string {
		key := p.String()
		is, ok := known[key]
		if !ok {
			is = tree.Tells(p)
			known[key] = is
		}
		return is
	}
}

// isFor reports whether all retired resources match Parameters. The current variants may distinguish fewer
// clients than the retired variants did.
func (c *class) isFor(p params.Parameters) bool {
	for _, r := range c.retired {
		if slices.ContainsFunc(r.variants, func(r *xds.Resource) bool { return !r.For.Matches(p) }) {
			return false
		}
	}
	return true
}

// classOf returns the class of clients with Parameters, and creates the class if necessary. The error is a
// gRPC status: there are MostClasses classes already.
func (c *Cache) classOf(p params.Parameters) (*class, error) {
	if c.tree == nil {
		return c.classes[0], nil // the first Publish divides them
	}
	tells := c.tree.Tells(p)
	for _, of := range c.classes {
		if of.tells == tells && !of.several && of.isFor(p) {
			return of, nil
		}
	}
	if len(c.classes) == MostClasses {
		return nil, status.Errorf(codes.ResourceExhausted,
			"the dynamic parameters of clients select %d different sets of resources, and no more are allowed: "+
				"this client gets no resources; distinguish clients by fewer constraints", MostClasses)
	}
	of := newClass(p)
	of.tells = tells
	of.selection = c.classes[0].selection.Then(c.tree, variants.Client{Parameters: p})
	of.served = of.selection.Snapshot
	c.classes = append(c.classes, of)
	return of, nil
}

// view returns the view of a class for a form, and creates the view if necessary. The caller holds the lock.
func (c *Cache) view(of *class, f form) *view {
	v := of.views[f]
	if v == nil {
		v = newView(medium{f.Kind, c.options.Cluster, f.verbatim}, f.located, c.registry)
		v.several = of.several
		of.views[f] = v
		if of.served != nil {
			v.bind(context.Background(), of.served)
		}
	}
	return v
}
