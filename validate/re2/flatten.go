package re2

import (
	"maps"
	"slices"
)

// optimize makes all exits skip nops. It also marks each alternative between a loop over any byte and the match.
// Like RE2, it marks only instructions reachable from start, and not the loop before start.
func (p *program) optimize(start int) {
	past := func(i int) int {
		for p.insts[i].op == opNop {
			i = p.insts[i].out
		}
		return i
	}
	for i := range p.insts {
		in := &p.insts[i]
		in.out, in.other = past(in.out), past(in.other)
	}
	for i := range p.visit(start, nil, func(int) {}, true) {
		in := &p.insts[i]
		if in.op != opAlt {
			continue
		}
		for _, way := range [][2]int{{in.out, in.other}, {in.other, in.out}} {
			loop, end := p.insts[way[0]], p.insts[way[1]]
			if loop.anyByte && loop.out == i && end.match {
				in.op = opAltMatch
			}
		}
	}
}

// flatten returns the number of instructions in the lists that RE2 makes of the program. RE2 makes one list for
// each root, and resolves the alternatives in it.
func (p *program) flatten(start, unanchored int) int {
	roots := map[int]bool{0: true, start: true, unanchored: true}
	before := make(map[int][]int)
	p.visit(unanchored, nil, func(i int) {
		switch in := p.insts[i]; in.op {
		case opAlt, opAltMatch:
			before[in.out] = append(before[in.out], i)
			before[in.other] = append(before[in.other], i)
		case opStep:
			roots[in.out] = true
		}
	}, true)
	sorted := slices.Sorted(maps.Keys(roots))
	for _, root := range slices.Backward(sorted) {
		if root == 0 || root == start || root == unanchored {
			continue
		}
		tree := p.visit(root, roots, func(int) {}, false)
		for i := range tree {
			if slices.ContainsFunc(before[i], func(b int) bool { return !tree[b] }) {
				roots[i] = true
			}
		}
	}
	size := 0
	for root := range roots {
		p.visit(root, roots, func(i int) {
			if op := p.insts[i].op; i != root && roots[i] || op != opAlt && op != opNop {
				size++
			}
		}, false)
	}
	return size
}

// visit calls f for each instruction reachable from the instruction from. If all is false, visit does not go beyond
// opStep. It does not go beyond roots.
func (p *program) visit(from int, roots map[int]bool, f func(int), all bool) map[int]bool {
	seen := make(map[int]bool)
	stack := []int{from}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		f(i)
		if i != from && roots[i] {
			continue
		}
		switch in := p.insts[i]; in.op {
		case opAlt, opAltMatch:
			stack = append(stack, in.other, in.out)
		case opNop:
			stack = append(stack, in.out)
		case opStep:
			if all {
				stack = append(stack, in.out)
			}
		}
	}
	return seen
}
