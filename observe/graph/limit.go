package graph

import (
	"fmt"
	"sort"

	"xdspub/diag"
)

// Limits bound a Graph. 0 means no limit.
type Limits struct{ Nodes, Edges int }

// exceeded reports whether a Graph is larger than the Limits.
func (l Limits) exceeded(g *Graph) bool {
	return l.Nodes > 0 && len(g.Nodes) > l.Nodes || l.Edges > 0 && len(g.Edges) > l.Edges
}

// Limit returns a Graph within the Limits, as far as a group of each Kind allows. It shows as many Nodes as fit, and
// counts the others in groups: a group has the Nodes of one Kind behind one Node, or behind one group. Nodes with an
// error, changed Nodes and the resource of Focus, with the Nodes that lead to them, come first.
func (g *Graph) Limit(l Limits) *Graph {
	if !l.exceeded(g) {
		return g
	}
	f := newForest(g)
	nodes := l.Nodes
	if nodes == 0 {
		nodes = len(g.Nodes)
	}
	fits := func(first map[*Node]bool, most quota) bool {
		a := f.assign(first, most, nodes)
		return a != nil && (l.Edges == 0 || len(f.edges(a.shown)) <= l.Edges)
	}
	for important := max(nodes/2, 1); ; important /= 2 {
		first := f.important(important)
		if important > 0 && !fits(first, quota{}) {
			continue
		}
		n := sort.Search(nodes, func(n int) bool { return !fits(first, equal(n+1)) })
		return f.grouped(f.assign(first, f.raised(equal(n), func(most quota) bool { return fits(first, most) }), len(g.Nodes)))
	}
}

// quota is the number of Nodes that a class of each Kind shows, by the column of the Kind. A larger quota makes a
// larger Graph.
type quota [16]int

func equal(n int) (q quota) {
	for i := range q {
		q[i] = n
	}
	return q
}

// raised returns a quota that shows more Nodes, of the left columns first.
func (f *forest) raised(q quota, fits func(quota) bool) quota {
	last := -1
	for _, n := range f.graph.Nodes {
		column := n.Kind.column()
		if column == last {
			continue
		}
		last = column
		for more := q; ; q = more {
			if more[column] = 2*q[column] + 1; more[column] > 2*len(f.graph.Nodes) || !fits(more) {
				break
			}
		}
	}
	return q
}

// forest has a parent for each Node: the first Node that leads to it.
type forest struct {
	graph  *Graph
	parent map[*Node]*Node // nil for a root
	order  []*Node         // parents first
}

func newForest(g *Graph) *forest {
	f := &forest{graph: g, parent: make(map[*Node]*Node, len(g.Nodes))}
	next := g.neighbours()
	seen := make(map[*Node]bool, len(g.Nodes))
	reach := func(root *Node) {
		queue := []*Node{root}
		seen[root] = true
		for ; len(queue) > 0; queue = queue[1:] {
			n := queue[0]
			f.order = append(f.order, n)
			for _, e := range next.out[n] {
				if !seen[e.To] {
					seen[e.To] = true
					f.parent[e.To] = n
					queue = append(queue, e.To)
				}
			}
		}
	}
	for _, n := range g.Nodes {
		if len(next.in[n]) == 0 {
			reach(n)
		}
	}
	for _, n := range g.Nodes { // the others are in circles
		if !seen[n] {
			reach(n)
		}
	}
	return f
}

// important returns at most most Nodes that have to be shown.
func (f *forest) important(most int) map[*Node]bool {
	is := make(map[*Node]bool)
	for _, matters := range []func(*Node) bool{
		func(n *Node) bool { return n.focus },
		func(n *Node) bool { return n.Fault == Error },
		func(n *Node) bool { return n.Change != Unchanged },
	} {
		for _, n := range f.graph.Nodes {
			if !matters(n) || is[n] {
				continue
			}
			var path []*Node
			for p := n; p != nil && !is[p]; p = f.parent[p] {
				path = append(path, p)
			}
			if len(is)+len(path) > most {
				return is
			}
			for _, p := range path {
				is[p] = true
			}
		}
	}
	return is
}

// class has the Nodes of one Kind behind one Node or group.
type class struct {
	kind    Kind
	behind  *Node
	absence Absence
}

// id returns the ID of the group of a class.
func (c class) id() string {
	id := "group/" + string(c.kind) + "/" + string(c.absence) + "/"
	if c.behind != nil {
		id += c.behind.ID
	}
	return id
}

// assignment has the Node or the group in the result for each Node.
type assignment struct {
	shown  map[*Node]*Node
	nodes  []*Node
	groups map[class]*Node
	hidden map[class][]*Node
	seen   map[class]int // how many Nodes of a class are shown, without the important Nodes
}

// assign shows the first Nodes of each class, by the quota, and the important Nodes, and hides the others in a group
// of each class. It returns nil if the result has more Nodes than size.
func (f *forest) assign(important map[*Node]bool, most quota, size int) *assignment {
	a := &assignment{
		shown: make(map[*Node]*Node, len(f.order)), groups: make(map[class]*Node), hidden: make(map[class][]*Node), seen: make(map[class]int),
	}
	for _, n := range f.order {
		c := class{n.Kind, a.shown[f.parent[n]], n.Absence}
		switch group := a.groups[c]; {
		case important[n] || a.seen[c] < most[n.Kind.column()]:
			if !important[n] {
				a.seen[c]++
			}
			own := *n
			a.shown[n] = &own
			a.nodes = append(a.nodes, &own)
		case group == nil:
			a.groups[c] = &Node{ID: c.id(), Kind: c.kind, Absence: c.absence}
			a.nodes = append(a.nodes, a.groups[c])
			fallthrough
		default:
			a.shown[n] = a.groups[c]
			a.hidden[c] = append(a.hidden[c], n)
		}
		if len(a.nodes) > size {
			return nil
		}
	}
	return a
}

// grouped returns the Graph of an assignment.
func (f *forest) grouped(a *assignment) *Graph {
	for c, list := range a.hidden {
		group := a.groups[c]
		if len(list) == 1 {
			*group = *list[0]
			continue
		}
		describeGroup(group, list, a.seen[c] > 0)
		group.Key.Type = list[0].Key.Type
	}
	g := sorted(a.nodes, f.edges(a.shown))
	g.Unplaced, g.Resources = f.graph.Unplaced, f.graph.Resources
	return g
}

// describeGroup counts the Nodes of a group. more means that others of its class are shown.
func describeGroup(group *Node, list []*Node, more bool) {
	group.Count, group.order = len(list), list[0].order
	faults := 0
	for _, n := range list {
		group.Fault = worse(group.Fault, n.Fault)
		if n.Fault == Error {
			faults++
		}
		if n.Change != Unchanged {
			group.Change = Changed
		}
	}
	noun := kinds[group.Kind.column()].noun
	group.Label = diag.Count(len(list), noun)
	if more {
		group.Label = fmt.Sprintf("%d more", len(list))
	}
	if faults > 0 {
		group.Detail = diag.CountFindings(faults, 0)
	} else if first, last := list[0].Label, list[len(list)-1].Label; first != last {
		group.Detail = diag.Clip(first, 40) + " … " + diag.Clip(last, 40)
	}
}

// edges returns the Edges between the Nodes of the result.
func (f *forest) edges(shown map[*Node]*Node) (list []*Edge) {
	between := make(map[[2]*Node]*Edge)
	for _, e := range f.graph.Edges {
		from, to := shown[e.From], shown[e.To]
		if from == to && from.Count > 0 {
			continue // inside a group
		}
		key := [2]*Node{from, to}
		if is := between[key]; is != nil {
			is.Count += e.Count
			is.Fault = worse(is.Fault, e.Fault)
			if is.Change != e.Change {
				is.Change = Changed
			}
			continue
		}
		is := *e
		is.From, is.To = from, to
		if from.Count+to.Count > 0 {
			is.Path = ""
		}
		between[key] = &is
		list = append(list, &is)
	}
	return list
}
