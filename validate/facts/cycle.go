package facts

import (
	"slices"
)

// Cycles maps each node of a cycle to a number. Cycles with a common node have the same number. CyclePath searches
// only among the nodes with the number of its start.
func Cycles(nodes []string, next func(node string) []string) map[string]int {
	c := cycleSearch{next: next, order: make(map[string]int), low: make(map[string]int), found: make(map[string]int)}
	for _, node := range nodes {
		if c.order[node] == 0 {
			c.visit(node)
		}
	}
	return c.found
}

// cycleSearch is the state of Tarjan's algorithm, which visits each node and each edge once.
type cycleSearch struct {
	next  func(string) []string
	order map[string]int // when the search came to a node, from 1
	low   map[string]int // the smallest order of the nodes that a node is known to lead back to; 0 after its cycle was found
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

// CyclePath returns a path from a node of a cycle back to the node. The path begins with start, and does not repeat
// start at its end. cycle is the result of Cycles.
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
