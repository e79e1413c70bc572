package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// Find returns the resource that a text names: NAME, or API/NAME such as CDS/web. A name with a slash may have an API
// in front, too. The error says what to write instead.
func (g *Graph) Find(text string) (*Node, error) {
	api, name, hasAPI := strings.Cut(text, "/")
	t := xds.TypeOfAPI(strings.ToUpper(api))
	var found []*Node
	for _, n := range g.Nodes {
		if n.IsResource() && (n.Key.Name == text || hasAPI && n.Key.Type == t && n.Key.Name == name) && !slices.ContainsFunc(found, n.isSame) {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several resources have this name: write %s", strings.Join(resources(found), " or "))
	}
	return nil, g.nearest(text)
}

// isSame reports whether two Nodes stand for one Key: the resource in the tree, and its namesake elsewhere.
func (n *Node) isSame(other *Node) bool { return n.Key == other.Key }

func resources(list []*Node) (names []string) {
	for _, n := range list {
		names = append(names, n.Resource())
	}
	return names
}

// nearest returns the error for a text that names no resource.
func (g *Graph) nearest(text string) error {
	var names, whole []string
	byName := make(map[string]string)
	for _, n := range g.Nodes {
		if n.IsResource() && n.Key.Name != "" {
			names, whole = append(names, n.Key.Name), append(whole, n.Resource())
			if byName[n.Key.Name] == "" {
				byName[n.Key.Name] = n.Resource()
			}
		}
	}
	_, name, hasAPI := strings.Cut(text, "/")
	meant := byName[diag.NewCandidates(names).Nearest(text)]
	if meant == "" {
		meant = diag.NewCandidates(whole).Nearest(text)
	}
	if meant == "" && hasAPI { // the name is right, the API is not
		if meant = byName[name]; meant == "" {
			meant = byName[diag.NewCandidates(names).Nearest(name)]
		}
	}
	switch {
	case meant != "":
		return fmt.Errorf("no resource has this name: did you mean %s?", meant)
	case len(whole) == 0:
		return errors.New("there are no resources")
	case len(whole) <= 10:
		return fmt.Errorf("no resource has this name: use %s", strings.Join(whole, ", "))
	}
	return errors.New("no resource has this name: write NAME, or API/NAME such as CDS/web")
}

// Focus returns the Graph of a resource with its neighbours: the resources that lead to it, and the resources that it
// leads to. depth is the largest number of references between the resource and a neighbour; 0 means no limit.
func (g *Graph) Focus(of *Node, depth int) *Graph {
	next := g.neighbours()
	kept := make(map[*Node]bool)
	for _, n := range within(of, depth, next.in, func(e *Edge) *Node { return e.From }) {
		kept[n] = true
	}
	for _, n := range within(of, depth, next.out, func(e *Edge) *Node { return e.To }) {
		kept[n] = true
	}
	few := &Graph{Unplaced: g.Unplaced, Resources: g.Resources}
	is := make(map[*Node]*Node, len(kept))
	for _, n := range g.Nodes {
		if kept[n] {
			c := *n
			c.focus = n == of
			is[n] = &c
			few.Nodes = append(few.Nodes, &c)
		}
	}
	for _, e := range g.Edges {
		if kept[e.From] && kept[e.To] {
			c := *e
			c.From, c.To = is[e.From], is[e.To]
			few.Edges = append(few.Edges, &c)
		}
	}
	return few
}

// within returns the Nodes at a distance of at most depth references from a Node, in one direction. A step to a part,
// or from a part, is no distance.
func within(of *Node, depth int, edges map[*Node][]*Edge, end func(*Edge) *Node) []*Node {
	distance := map[*Node]int{of: 0}
	list := []*Node{of}
	for level := []*Node{of}; len(level) > 0; {
		var further []*Node
		for len(level) > 0 {
			n := level[len(level)-1]
			level = level[:len(level)-1]
			for _, e := range edges[n] {
				to, steps := end(e), distance[n]
				if !e.IsPart() {
					steps++
				}
				if was, known := distance[to]; known && was <= steps || depth > 0 && steps > depth {
					continue
				} else if !known {
					list = append(list, to)
				}
				distance[to] = steps
				if e.IsPart() {
					level = append(level, to)
				} else {
					further = append(further, to)
				}
			}
		}
		level = further
	}
	return list
}
