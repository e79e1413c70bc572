package graph

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// mostFindings is the number of findings that a Node lists.
const mostFindings = 5

// New returns the Graph of a Snapshot without variants. If several resources have a Key, the Graph shows the first.
// New returns an error only if ctx ends.
func New(ctx context.Context, s *xds.Snapshot, o Options) (*Graph, error) {
	b := &builder{
		options: o, snapshot: s, ids: make(map[string]*Node), edges: make(map[[2]*Node]*Edge),
		findings: make(map[xds.Key]diag.List), groups: make(map[xds.Key][]*Node),
	}
	b.sortFindings()
	if err := b.addAll(ctx); err != nil {
		return nil, err
	}
	g := sorted(b.nodes, b.list)
	g.Unplaced, g.Resources = b.unplaced, s.Len()
	return g, nil
}

type builder struct {
	options  Options
	snapshot *xds.Snapshot
	nodes    []*Node
	list     []*Edge
	ids      map[string]*Node
	edges    map[[2]*Node]*Edge
	// groups has the resources of each group, such as the endpoints of a collection. A Key without a name has all
	// resources of its type.
	groups   map[xds.Key][]*Node
	findings map[xds.Key]diag.List
	unplaced diag.List
	// cut means that Options.Findings lack some findings.
	cut bool
}

// sortFindings sorts the findings by resource.
func (b *builder) sortFindings() {
	for _, d := range b.options.Findings {
		t := xds.TypeOfURL(d.Resource.Type)
		b.cut = b.cut || d.Code == diag.TooMany.Name
		if t == nil || len(b.snapshot.Named(xds.Key{Type: t, Name: d.Resource.Name})) == 0 {
			if d.Severity != diag.Info {
				b.unplaced = append(b.unplaced, d)
			}
			continue
		}
		k := xds.Key{Type: t, Name: d.Resource.Name}
		b.findings[k] = append(b.findings[k], d)
	}
}

func (b *builder) addAll(ctx context.Context) error {
	delta, was := xds.Delta{}, make(map[xds.Key]*xds.Resource)
	changes := make(map[xds.Key]Change)
	if b.options.Before != nil {
		delta = b.snapshot.Diff(b.options.Before)
	}
	for _, r := range delta.Added {
		changes[r.Key] = Added
	}
	for _, r := range delta.Changed {
		changes[r.Key] = Changed
		was[r.Key] = b.options.Before.Lookup(r.Type, r.Name)
	}
	var all []*xds.Resource
	for _, r := range b.snapshot.All() {
		if len(all) > 0 && all[len(all)-1].Key == r.Key {
			continue
		}
		all = append(all, r)
		n := b.add(&Node{ID: idOf(r.Key, ""), Kind: kindOf(r.Type), Key: r.Key, Change: changes[r.Key]})
		b.group(n)
	}
	for _, r := range all {
		o, err := outlineOf(ctx, r)
		if err != nil {
			return err
		}
		edges := b.addResource(r, o, changes[r.Key])
		if old := was[r.Key]; old != nil {
			before, err := outlineOf(ctx, old)
			if err != nil {
				return err
			}
			b.markChanged(r, o, before, edges)
		}
	}
	for _, r := range delta.Removed {
		if n := b.ids[idOf(r.Key, "")]; n != nil { // a reference names it
			n.Change = Removed
			continue
		}
		b.add(&Node{ID: idOf(r.Key, ""), Kind: kindOf(r.Type), Key: r.Key, Label: diag.Clip(r.Name, mostText), Change: Removed})
	}
	return nil
}

func (b *builder) add(n *Node) *Node {
	n.order = len(b.nodes)
	b.nodes = append(b.nodes, n)
	b.ids[n.ID] = n
	return n
}

// group adds a resource to the groups that a subscription can ask for.
func (b *builder) group(n *Node) {
	t := n.Key.Type
	if t == xds.ScopedRoutes {
		b.groups[xds.Key{Type: t}] = append(b.groups[xds.Key{Type: t}], n)
	}
	if t.Group != nil {
		of := xds.Key{Type: t, Name: t.Group(n.Key.Name)}
		b.groups[of] = append(b.groups[of], n)
	}
}

// addResource adds the parts and the references of a resource. It returns the edges of each reference.
func (b *builder) addResource(r *xds.Resource, o *outline, change Change) (edges [][]*Edge) {
	nodes := make([]*Node, len(o.parts))
	for i, p := range o.parts {
		if i == 0 {
			nodes[0] = b.ids[idOf(r.Key, "")]
			nodes[0].Label, nodes[0].Detail = diag.Clip(p.label, mostText), p.detail
			if copies := len(b.snapshot.Named(r.Key)); copies > 1 {
				nodes[0].Detail = fmt.Sprintf("%d of this name", copies)
			}
			continue
		}
		nodes[i] = b.add(&Node{ID: idOf(r.Key, p.path), Kind: p.kind, Key: r.Key, Path: p.path, Label: p.label, Detail: p.detail})
		if change == Added {
			nodes[i].Change = Added
		}
		b.link(&Edge{From: nodes[p.around], To: nodes[i], Change: nodes[i].Change})
	}
	found := judged(b.findings[r.Key], string(r.Type.Name))
	for _, ref := range o.refs {
		edges = append(edges, b.refer(nodes[ref.from], ref, found[string(ref.path)], change == Added))
	}
	if len(found) > 0 {
		at := make(map[string]*Node, len(nodes))
		for _, n := range nodes {
			at[string(n.Path)] = n
		}
		for _, d := range b.findings[r.Key] {
			mark(nodes[0], at, d)
		}
	}
	return edges
}

func faultOf(d diag.Diagnostic) Fault {
	switch d.Severity {
	case diag.Error:
		return Error
	case diag.Warning:
		return Warning
	}
	return NoFault
}

// verdict is what findings say about a path.
type verdict struct {
	fault      Fault
	unresolved bool
}

// judged returns the verdicts of findings by their paths. name is the path of the resource's own name, which is a
// reference, too, if a cluster subscribes to endpoints of its name. Other findings about the name are about no
// reference.
func judged(findings diag.List, name string) map[string]verdict {
	of := make(map[string]verdict, len(findings))
	for _, d := range findings {
		v := of[d.Path]
		unresolved := strings.HasPrefix(d.Code, "unresolved-reference")
		if d.Path != name || unresolved {
			v.fault = worse(v.fault, faultOf(d))
		}
		v.unresolved = v.unresolved || unresolved
		of[d.Path] = v
	}
	return of
}

// mark gives a finding to the innermost part around its path, and its fault to the resource, too. parts has the parts
// by their paths.
func mark(resource *Node, parts map[string]*Node, d diag.Diagnostic) {
	fault := faultOf(d)
	if fault == NoFault {
		return
	}
	n := parts[d.Path]
	for path := d.Path; n == nil; n = parts[path] {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	resource.Fault = worse(resource.Fault, fault)
	n.Fault = worse(n.Fault, fault)
	if len(n.Findings) < mostFindings {
		n.Findings = append(n.Findings, diag.Clip(d.String(), 2*mostText))
	}
}

// refer adds the edges of a reference, and returns them. v is the verdict on the path of the reference.
func (b *builder) refer(from *Node, ref reference, v verdict, added bool) (edges []*Edge) {
	targets, served := b.targets(ref)
	if len(targets) == 0 {
		if ref.subscription != nil && ref.target.Name == "" || ref.target.Type == xds.VirtualHost {
			return nil // the reference names no resource
		}
		absence := Elsewhere
		if ref.atRunTime {
			absence = AtRunTime
		} else if v.unresolved || served || b.cut {
			absence = Missing
			if !v.unresolved && (b.options.Findings == nil || b.cut) {
				v.fault = Error
			}
		}
		targets = []*Node{b.absent(ref, absence)}
	}
	for _, to := range targets {
		if to.Absence != Present {
			to.Fault = worse(to.Fault, v.fault)
		}
		e := &Edge{From: from, To: to, Path: ref.path, Fault: v.fault, Count: 1}
		if added {
			e.Change = Added
		}
		edges = append(edges, b.link(e))
	}
	return edges
}

// targets returns the Nodes of the resources that a reference leads to. served means that the Snapshot alone answers
// the reference.
func (b *builder) targets(ref reference) (list []*Node, served bool) {
	switch sub := ref.subscription; {
	case ref.atRunTime:
		return nil, false
	case sub == nil:
		if len(b.snapshot.Named(ref.target)) > 0 {
			list = []*Node{b.ids[idOf(ref.target, "")]}
		}
		return list, false
	case b.snapshot.Serves(*sub) && (sub.Target.Group != nil || sub.Target == xds.ScopedRoutes):
		list = b.groups[ref.target]
		if len(list) == 0 && len(b.snapshot.Named(ref.target)) > 0 { // one resource of a group
			list = []*Node{b.ids[idOf(ref.target, "")]}
		}
		return list, true
	default:
		if r := b.snapshot.Answer(*sub); r != nil {
			list = []*Node{b.ids[idOf(r.Key, "")]}
		}
		return list, b.snapshot.Serves(*sub)
	}
}

// absent returns the Node of a target that the Snapshot lacks.
func (b *builder) absent(ref reference, absence Absence) *Node {
	id := idOf(ref.target, "")
	details := map[Absence]string{Missing: "missing", Elsewhere: "not in this tree", AtRunTime: "named by a header"}
	if ref.atRunTime {
		id = ref.target.Type.API + "/##" + escape(ref.target.Name)
	} else if absence == Elsewhere && len(b.snapshot.Named(ref.target)) > 0 { // another config source has a namesake
		id = ref.target.Type.API + "/##elsewhere/" + escape(ref.target.Name)
	}
	n := b.ids[id]
	if n == nil {
		n = b.add(&Node{
			ID: id, Kind: kindOf(ref.target.Type), Key: ref.target, Absence: absence,
			Label: diag.Clip(ref.target.Name, mostText), Detail: details[absence],
		})
	}
	if absence == Missing {
		n.Absence, n.Detail = absence, details[absence]
	}
	return n
}

// link adds an edge, or counts it if its Nodes have an edge already. It returns the edge of the Graph.
func (b *builder) link(e *Edge) *Edge {
	key := [2]*Node{e.From, e.To}
	if is := b.edges[key]; is != nil {
		is.Count += e.Count
		is.Fault = worse(is.Fault, e.Fault)
		return is
	}
	b.edges[key] = e
	b.list = append(b.list, e)
	return e
}

// markChanged marks the parts and the references of a changed resource that its former version did not have. edges
// are those of addResource.
func (b *builder) markChanged(r *xds.Resource, is, was *outline, edges [][]*Edge) {
	type place struct {
		kind  Kind
		label string
	}
	had, places, named := make(map[string]bool), make(map[place]bool), make(map[xds.Key]bool)
	for _, p := range was.parts {
		had[content(p)] = true
		places[place{p.kind, p.label}] = true
	}
	for _, ref := range was.refs {
		named[ref.target] = true
	}
	for _, p := range is.parts[1:] {
		n := b.ids[idOf(r.Key, p.path)]
		switch {
		case had[content(p)]:
		case places[place{p.kind, p.label}]:
			n.Change = Changed
		default:
			n.Change = Added
		}
		if around := b.ids[idOf(r.Key, is.parts[p.around].path)]; n.Change == Added {
			b.edges[[2]*Node{around, n}].Change = Added
		}
	}
	for i, ref := range is.refs {
		if !named[ref.target] {
			for _, e := range edges[i] {
				e.Change = Added
			}
		}
	}
}

// content returns a text that only parts with equal messages share.
func content(p part) string {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.message)
	if err != nil {
		return ""
	}
	return string(p.kind) + "\x00" + string(data)
}
