package facts

import (
	"slices"
)

// Cycles returns the nodes that are in a cycle. Nodes of the same cycle have the same number. CyclePath
// searches only among these nodes, not among all nodes that lead to a cycle.
func Cycles(nodes []string, next func(node string) []string) map[string]int {
	c := cycleSearch{next: next, order: make(map[string]int), low: make(map[string]int), found: make(map[string]int)}
	for _, node := range nodes {
		if c.order[node] == 0 {
			c.visit(node)
		}
	}
	return c.found
}

// cycleSearch is Tarjan's algorithm, which visits each node and each edge once.
type cycleSearch struct {
	next  func(string) []string
	order map[string]int // when a node was visited, from 1
	low   map[string]int // the first node, by order, that it leads back to; 0 once its cycle is known
	stack []string
	found map[string]int
}

func (c *cycleSearch) visit(node string) {
	at, bottom := len(c.order)+1, len(c.stack)
	c.order[node], c.low[node] = at, at
	c.stack = append(c.stack, node)
	itself := false
	for _, to := range c.next(node) {
		itself = itself || to == node
		if c.order[to] == 0 {
			c.visit(to)
		}
		if c.low[to] != 0 {
			c.low[node] = min(c.low[node], c.low[to])
		}
	}
	if c.low[node] != at {
		return
	}
	members := c.stack[bottom:]
	c.stack = c.stack[:bottom]
	for _, m := range members {
		c.low[m] = 0
		if len(members) > 1 || itself {
			c.found[m] = at
		}
	}
}

// CyclePath returns a path from a node of a cycle back to the node. The path begins with the node.
func CyclePath(start string, next func(node string) []string, cycle map[string]int) []string {
	seen := make(map[string]bool)
	var from func(node string) []string
	from = func(node string) []string {
		seen[node] = true
		list := next(node)
		if slices.Contains(list, start) {
			return []string{node}
		}
		for _, to := range list {
			if seen[to] || cycle[to] != cycle[start] {
				continue
			}
			if rest := from(to); rest != nil {
				return append(rest, node)
			}
		}
		return nil
	}
	path := from(start)
	slices.Reverse(path)
	return path
}
