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

// A client gets one variant of each resource. Clients whom the variants do not tell apart are a class:
// they get the same Snapshot, and share what is made of it.

// MostClasses bounds the classes: each costs what a Snapshot does.
const MostClasses = 256

// class is what its clients get, and who they are.
type class struct {
	// of are the dynamic parameters of one of the clients, and tells is what the variants tell of them.
	of    params.Parameters
	tells string
	// several means that its clients have several sets of parameters each, and may get any variant.
	several bool
	// selection is what was published last for them; nil before the first Publish. served is that with
	// the retired resources.
	selection *variants.Selection
	served    *xds.Snapshot
	retired   map[xds.Key]retired
	views     map[form]*view
}

// retired is a resource that the Snapshot no longer has, in all its variants, and since when.
type retired struct {
	variants []*xds.Resource
	since    time.Time
}

// form is how resources are sent to a client.
type form struct {
	Kind
	located  bool // the client locates resources, and gets them with their constraints
	verbatim bool // verbatim in medium
}

func newClass(of params.Parameters) *class {
	return &class{of: of, retired: make(map[xds.Key]retired), views: make(map[form]*view)}
}

// split returns a class of clients that got what those of c get, and will no longer.
func (c *class) split() *class {
	s := &class{tells: c.tells, selection: c.selection, served: c.served, retired: c.retired, views: make(map[form]*view)}
	for f, v := range c.views {
		s.views[f] = v.split()
	}
	return s
}

// turn is what the clients of a class get next, and who they are then.
type turn struct {
	class     *class
	of        params.Parameters
	tells     string
	selection *variants.Selection
	served    *xds.Snapshot
	retired   map[xds.Key]retired
	joins     clientsOf // those that come from the class that this one was split from
	still     bool      // the clients get what they have
}

// clientsOf are clients whom the variants do not tell apart.
type clientsOf struct {
	streams []*Stream
	asking  []*polled
}

// to returns the turn of a class to a Tree, for clients with Parameters.
func (c *class) to(tree *variants.Tree, of params.Parameters) *turn {
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

// stays returns the turn of a class to what it has.
func (c *class) stays() *turn {
	return &turn{class: c, of: c.of, tells: c.tells, selection: c.selection, served: c.served, retired: c.retired}
}

// without returns the turn of a class to what it has without some of what is retired.
func (c *class) without(gone []xds.Key) *turn {
	t := c.stays()
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

// withRetired returns a Snapshot with the resources that it no longer has and clients may still
// use: those, and the resources of the Snapshot. It is made from what is served, by the Change
// alone where that is known.
func (c *class) withRetired(s *xds.Snapshot) (*xds.Snapshot, map[xds.Key]retired) {
	if c.several {
		return c.allWithRetired(s)
	}
	all, now := maps.Clone(c.retired), time.Now()
	var change []xds.Edited
	for _, e := range edits(c.selection.Snapshot, s) {
		key := e.Key()
		e.Was = c.served.Lookup(key.Type, key.Name) // with the same content as that of the selection
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

// allWithRetired is withRetired of all variants. A variant goes at once where the resource has another one.
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

// bind makes the turn what the views serve, and tells nobody yet. It returns false where ctx has ended.
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

// gather makes the clients that join the class those of it.
func (t *turn) gather(ps *polls) {
	t.class.of = t.of
	for _, s := range t.joins.streams {
		s.moves(t.class)
	}
	ps.move(t.joins.asking, t.class.views[form{Kind: REST}])
}

// take makes the turn what the class has.
func (t *turn) take() {
	c := t.class
	c.tells, c.selection, c.served, c.retired = t.tells, t.selection, t.served, t.retired
}

// push sends the clients what has changed for them.
func (t *turn) push(w *wait) {
	if t.still {
		t.class.othersChange()
		return
	}
	for _, v := range t.class.views {
		v.push(w)
	}
}

// tellsAs reports whether a Tree tells of each client what the published one does.
func (c *Cache) tellsAs(tree *variants.Tree) bool { return c.tree != nil && tree.TellsAs(c.tree) }

// turns returns the turns of all classes to a Tree. same is what tellsAs reports of it. Clients that it tells from others of their class
// become one of their own; classes without clients go.
func (c *Cache) turns(tree *variants.Tree, same bool) (list []*turn) {
	tells, asking := tellsOf(tree), c.registry.polls.byView()
	for i, of := range c.classes {
		all := of.clients(asking)
		switch {
		case i > 0 && len(all.streams)+len(all.asking) == 0:
		case same, of.several:
			list = append(list, of.to(tree, of.of))
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

// part are clients with Parameters, and others whom the variants do not tell from them.
type part struct {
	of params.Parameters
	clientsOf
}

// clients returns those of a class.
func (c *class) clients(asking map[*view][]*polled) (all clientsOf) {
	for _, v := range c.views {
		all.streams = append(all.streams, v.all()...)
	}
	all.asking = asking[c.views[form{Kind: REST}]]
	return all
}

// parts returns clients by what the variants tell of them.
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

// divide returns the turns of the parts of a class, by what a Tree tells of them. The class goes on with
// the part that stay tells, or any where there is none like that; its turn comes first.
func (c *class) divide(tree *variants.Tree, parts map[string]*part, stay string) []*turn {
	all := slices.Sorted(maps.Keys(parts))
	if parts[stay] == nil {
		stay = all[0]
	}
	first := c.to(tree, parts[stay].of)
	first.tells = stay
	list := []*turn{first}
	for _, tells := range all {
		if tells != stay {
			t := c.split().to(tree, parts[tells].of)
			t.tells, t.joins = tells, parts[tells].clientsOf
			list = append(list, t)
		}
	}
	return list
}

// tellsOf returns Tree.Tells, which it keeps for Parameters.
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

// isFor reports whether all resources that are retired are for a client with Parameters. What the variants of
// today tell of clients may be less than what those told that are gone.
func (c *class) isFor(p params.Parameters) bool {
	for _, r := range c.retired {
		if slices.ContainsFunc(r.variants, func(r *xds.Resource) bool { return !r.For.Matches(p) }) {
			return false
		}
	}
	return true
}

// classOf returns the class of clients with Parameters, and makes one where there is none. The error is
// a status of gRPC.
func (c *Cache) classOf(p params.Parameters) (*class, error) {
	if c.tree == nil {
		return c.classes[0], nil // the first Publish tells them apart
	}
	tells := c.tree.Tells(p)
	for _, of := range c.classes {
		if of.tells == tells && !of.several && of.isFor(p) {
			return of, nil
		}
	}
	if len(c.classes) == MostClasses {
		return nil, status.Errorf(codes.ResourceExhausted, "%d kinds of clients are told apart by their dynamic parameters: no more are allowed", MostClasses)
	}
	of := newClass(p)
	of.tells = tells
	of.selection = c.classes[0].selection.Then(c.tree, variants.Client{Parameters: p})
	of.served = of.selection.Snapshot
	c.classes = append(c.classes, of)
	return of, nil
}

// view returns the view of a class, and makes it where that is the first that asks for it. The caller
// holds the lock.
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
