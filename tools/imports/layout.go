package main

import (
	"maps"
	"slices"
)

// node is a box of the picture, or a place where an arrow passes a row.
type node struct {
	name         string // "" for an arrow that passes
	row          int
	x, width     float64 // x is its middle
	above, below []*node
}

// layout holds the nodes by row, from left to right.
type layout [][]*node

const (
	gap    = 14 // between nodes of a row
	sweeps = 60
)

// layOut puts each box into a row below all that lead to it, orders the rows so that few
// arrows cross, and moves boxes below and above those that they have arrows with.
func layOut(g graph, width func(name string) float64) layout {
	l := rows(g, width)
	best, least := l.order(), l.crossings()
	for i := range sweeps {
		l.sweep(i%2 == 0)
		if n := l.crossings(); n < least {
			best, least = l.order(), n
		}
	}
	copy(l, best)
	l.place()
	return l
}

// rows returns the boxes by row. An arrow over several rows gets a node in each of them.
func rows(g graph, width func(name string) float64) layout {
	nodes := make(map[string]*node)
	var l layout
	add := func(n *node) *node {
		for len(l) <= n.row {
			l = append(l, nil)
		}
		l[n.row] = append(l[n.row], n)
		return n
	}
	names := slices.Sorted(maps.Keys(g))
	for _, name := range names {
		nodes[name] = add(&node{name: name, row: g.row(name), width: width(name)})
	}
	for _, name := range names {
		for _, below := range slices.Sorted(maps.Keys(g[name])) {
			from, to := nodes[name], nodes[below]
			for from.row+1 < to.row {
				from = join(from, add(&node{row: from.row + 1}))
			}
			join(from, to)
		}
	}
	l.place()
	return l
}

func join(from, to *node) *node {
	from.below, to.above = append(from.below, to), append(to.above, from)
	return to
}

// order returns the rows as they are ordered.
func (l layout) order() layout {
	rows := make(layout, len(l))
	for i, row := range l {
		rows[i] = slices.Clone(row)
	}
	return rows
}

// sweep orders each row by the middle of what its nodes have arrows with: in the row above,
// or below.
func (l layout) sweep(down bool) {
	for i := range l {
		row, joined := l[i], func(n *node) []*node { return n.above }
		if !down {
			row, joined = l[len(l)-1-i], func(n *node) []*node { return n.below }
		}
		middle := make(map[*node]float64, len(row))
		for _, n := range row {
			middle[n] = mean(joined(n), n.x)
		}
		slices.SortStableFunc(row, func(a, b *node) int {
			switch {
			case middle[a] < middle[b]:
				return -1
			case middle[a] > middle[b]:
				return 1
			}
			return 0
		})
		pack(row)
	}
}

// mean returns the mean x of nodes, or x where there are none.
func mean(nodes []*node, x float64) float64 {
	if len(nodes) == 0 {
		return x
	}
	sum := 0.0
	for _, n := range nodes {
		sum += n.x
	}
	return sum / float64(len(nodes))
}

// pack puts the nodes of a row side by side, around 0.
func pack(row []*node) {
	total := -float64(gap)
	for _, n := range row {
		total += n.width + gap
	}
	x := -total / 2
	for _, n := range row {
		n.x = x + n.width/2
		x += n.width + gap
	}
}

// crossings counts the arrows that cross.
func (l layout) crossings() int {
	count := 0
	for _, row := range l {
		var ends [][2]float64
		for _, n := range row {
			for _, to := range n.below {
				ends = append(ends, [2]float64{n.x, to.x})
			}
		}
		for i, a := range ends {
			for _, b := range ends[:i] {
				if (a[0]-b[0])*(a[1]-b[1]) < 0 {
					count++
				}
			}
		}
	}
	return count
}

// place moves nodes to where their arrows are short, in the order of their rows.
func (l layout) place() {
	for _, row := range l {
		pack(row)
	}
	for range sweeps {
		for _, row := range l {
			want := make([]float64, len(row))
			for i, n := range row {
				want[i] = mean(straight(n), n.x)
			}
			apart(row, want)
		}
	}
}

// straight returns the nodes that n is joined with, and those many times that an arrow passes
// with n: it shall not bend.
func straight(n *node) []*node {
	joined := slices.Concat(n.above, n.below)
	for _, other := range slices.Clone(joined) {
		if n.name == "" && other.name == "" {
			joined = append(joined, slices.Repeat([]*node{other}, 3)...)
		}
	}
	return joined
}

// apart puts nodes as near to where they want to be as their order and their widths allow: the
// mean of pushing them to the right and to the left.
func apart(row []*node, want []float64) {
	right, left := slices.Clone(want), slices.Clone(want)
	space := func(i int) float64 { return (row[i].width+row[i+1].width)/2 + gap }
	for i := 1; i < len(row); i++ {
		right[i] = max(right[i], right[i-1]+space(i-1))
	}
	for i := len(row) - 2; i >= 0; i-- {
		left[i] = min(left[i], left[i+1]-space(i))
	}
	for i, n := range row {
		n.x = (right[i] + left[i]) / 2
	}
}
