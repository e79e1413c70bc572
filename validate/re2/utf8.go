package re2

import (
	"slices"
	"unicode"
)

// runeRanges adds the instructions of a class of characters in UTF-8, as compile.cc of RE2 does. Byte ranges with
// equal beginnings share their first instructions, and some with equal ends share their last.
type runeRanges struct {
	*program
	begin  int
	out    []hole
	bytes  map[int]byteRange // the byte range of each instruction
	cached map[suffix]int
}

type byteRange struct{ lo, hi byte }

// suffix is a range of bytes, with the instruction after it.
type suffix struct {
	byteRange
	next int
}

func (p *program) runes(ranges []rune) fragment {
	folds := foldsASCII(ranges)
	c := &runeRanges{program: p, bytes: make(map[int]byteRange), cached: make(map[suffix]int)}
	for i := 0; i < len(ranges); i += 2 {
		if folds && 'A' <= ranges[i] && ranges[i+1] <= 'Z' {
			continue
		}
		c.add(ranges[i], ranges[i+1])
	}
	return fragment{begin: c.begin, out: c.out}
}

// lengths are the last characters that take one, two and three bytes.
var lengths = []rune{0x7f, 0x7ff, 0xffff}

// add adds a range of characters. It splits the range into parts whose characters have equal first bytes and any
// last bytes.
func (c *runeRanges) add(lo, hi rune) {
	if lo == 0x80 && hi == unicode.MaxRune {
		c.addAllAbove()
		return
	}
	for _, last := range lengths {
		if lo <= last && last < hi {
			c.add(lo, last)
			c.add(last+1, hi)
			return
		}
	}
	if hi <= unicode.MaxASCII {
		c.addSuffix(c.step(byteRange{byte(lo), byte(hi)}, 0))
		return
	}
	for i := 1; i <= len(lengths); i++ {
		m := rune(1)<<(6*i) - 1
		switch {
		case lo&^m == hi&^m:
		case lo&m != 0:
			c.add(lo, lo|m)
			c.add(lo|m+1, hi)
			return
		case hi&m != m:
			c.add(lo, hi&^m-1)
			c.add(hi&^m, hi)
			return
		}
	}
	first, last, id := encode(lo), encode(hi), 0
	for i := range slices.Backward(first) {
		b := byteRange{first[i], last[i]}
		if i == len(first)-1 || b.lo < b.hi && i != 0 {
			id = c.cachedStep(b, id)
		} else {
			id = c.step(b, id)
		}
	}
	c.addSuffix(id)
}

// addAllAbove adds all characters outside ASCII.
func (c *runeRanges) addAllAbove() {
	next := 0
	for _, lead := range []byteRange{{0xc2, 0xdf}, {0xe0, 0xef}, {0xf0, 0xf4}} {
		next = c.step(byteRange{0x80, 0xbf}, next)
		c.addSuffix(c.step(lead, next))
	}
}

// encode returns the bytes of a character outside ASCII. Like RE2, it also encodes halves of surrogate pairs.
func encode(r rune) []byte {
	switch n := slices.IndexFunc(lengths, func(last rune) bool { return r <= last }); n {
	case 1:
		return []byte{0xc0 | byte(r>>6), 0x80 | byte(r)&0x3f}
	case 2:
		return []byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f}
	default:
		return []byte{0xf0 | byte(r>>18), 0x80 | byte(r>>12)&0x3f, 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f}
	}
}

// step adds an instruction for a range of bytes. If next is 0, the instruction is the last of the class.
func (c *runeRanges) step(b byteRange, next int) int {
	i := c.program.add(inst{op: opStep, out: next})
	c.bytes[i] = b
	if next == 0 {
		c.out = append(c.out, hole{inst: i})
	}
	return i
}

func (c *runeRanges) cachedStep(b byteRange, next int) int {
	key := suffix{b, next}
	if _, ok := c.cached[key]; !ok {
		c.cached[key] = c.step(b, next)
	}
	return c.cached[key]
}

func (c *runeRanges) isCached(i int) bool {
	_, ok := c.cached[suffix{c.bytes[i], c.insts[i].out}]
	return ok
}

func (c *runeRanges) addSuffix(id int) {
	if c.begin == 0 {
		c.begin = id
		return
	}
	c.begin = c.merge(c.begin, id)
}

// merge returns an instruction that matches what root matches or what id matches. Because classes are sorted, only
// the range that was added last can share its first bytes with id.
func (c *runeRanges) merge(root, id int) int {
	last, isAlt := root, c.insts[root].op == opAlt
	if isAlt {
		last = c.insts[root].other
	}
	if c.bytes[last] != c.bytes[id] {
		return c.program.add(inst{op: opAlt, out: root, other: id})
	}
	if c.isCached(last) {
		last = c.program.add(inst{op: opStep, out: c.insts[last].out})
		c.bytes[last] = c.bytes[id]
		if isAlt {
			c.insts[root].other = last
		} else {
			root = last
		}
	}
	c.insts[last].out = c.merge(c.insts[last].out, c.insts[id].out)
	return root
}
