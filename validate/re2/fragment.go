package re2

import "slices"

type op int

const (
	opStep     op = iota // consumes a byte, marks a group, or checks a position
	opAlt                // goes on at out, or else at other
	opAltMatch           // an opAlt between the match and a loop over any byte
	opNop
	opEnd // the match or the failure
)

type inst struct {
	op         op
	out, other int
	anyByte    bool
	match      bool
}

// hole is an exit of an instruction that still needs a target: out, or other if other is set.
type hole struct {
	inst  int
	other bool
}

// fragment is a part of a program. A fragment with begin 0 never matches, and nullable means that it may match the
// empty text.
type fragment struct {
	begin    int
	out      []hole
	nullable bool
}

func (f fragment) fails() bool { return f.begin == 0 }

type program struct {
	insts    []inst
	encoding Encoding
}

func (p *program) add(i inst) int {
	p.insts = append(p.insts, i)
	return len(p.insts) - 1
}

func (p *program) patch(holes []hole, to int) {
	for _, h := range holes {
		if h.other {
			p.insts[h.inst].other = to
		} else {
			p.insts[h.inst].out = to
		}
	}
}

func (p *program) step(anyByte bool) fragment {
	i := p.add(inst{op: opStep, anyByte: anyByte})
	return fragment{begin: i, out: []hole{{inst: i}}}
}

func (p *program) nop() fragment {
	i := p.add(inst{op: opNop})
	return fragment{begin: i, out: []hole{{inst: i}}, nullable: true}
}

func (p *program) cat(a, b fragment) fragment {
	if a.fails() || b.fails() {
		return fragment{}
	}
	p.patch(a.out, b.begin)
	if p.insts[a.begin].op == opNop && len(a.out) == 1 && a.out[0].inst == a.begin {
		return b
	}
	return fragment{a.begin, b.out, a.nullable && b.nullable}
}

func (p *program) alt(a, b fragment) fragment {
	if a.fails() {
		return b
	}
	if b.fails() {
		return a
	}
	i := p.add(inst{op: opAlt, out: a.begin, other: b.begin})
	return fragment{i, slices.Concat(a.out, b.out), a.nullable || b.nullable}
}

// fork adds an alternative between body and the instruction after it. It returns the index and the open exit of the
// alternative.
func (p *program) fork(body int, lazy bool) (int, []hole) {
	if lazy {
		i := p.add(inst{op: opAlt, other: body})
		return i, []hole{{inst: i}}
	}
	i := p.add(inst{op: opAlt, out: body})
	return i, []hole{{inst: i, other: true}}
}

func (p *program) plus(a fragment, lazy bool) fragment {
	if a.fails() {
		return a
	}
	i, exit := p.fork(a.begin, lazy)
	p.patch(a.out, i)
	return fragment{a.begin, exit, a.nullable}
}

func (p *program) quest(a fragment, lazy bool) fragment {
	if a.fails() {
		return p.nop()
	}
	i, exit := p.fork(a.begin, lazy)
	return fragment{i, slices.Concat(exit, a.out), true}
}

func (p *program) star(a fragment, lazy bool) fragment {
	if a.nullable {
		return p.quest(p.plus(a, lazy), lazy)
	}
	i, exit := p.fork(a.begin, lazy)
	p.patch(a.out, i)
	return fragment{i, exit, true}
}
