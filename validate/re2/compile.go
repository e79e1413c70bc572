package re2

import (
	"regexp/syntax"
	"unicode"
)

// compile adds the instructions for re, as compile.cc of RE2 does.
func (p *program) compile(re *syntax.Regexp) fragment {
	lazy := re.Flags&syntax.NonGreedy != 0
	switch re.Op {
	case syntax.OpNoMatch:
		return fragment{}
	case syntax.OpLiteral:
		all := p.nop()
		for _, r := range re.Rune {
			all = p.cat(all, p.literal(r))
		}
		return all
	case syntax.OpCharClass:
		return p.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		return p.class([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpAnyChar:
		return p.class([]rune{0, unicode.MaxRune})
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		f := p.step(false)
		f.nullable = true
		return f
	case syntax.OpCapture:
		a := p.compile(re.Sub[0])
		if a.fails() {
			return a
		}
		open, shut := p.step(false), p.step(false)
		f := p.cat(p.cat(open, a), shut)
		f.nullable = a.nullable
		return f
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return p.repeat(re, lazy)
	case syntax.OpConcat:
		all := p.compile(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			all = p.cat(all, p.compile(sub))
		}
		return all
	case syntax.OpAlternate:
		all := p.compile(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			all = p.alt(all, p.compile(sub))
		}
		return all
	default: // OpEmptyMatch; after Simplify, no OpRepeat is left
		return p.nop()
	}
}

// repeat compiles x*, x+ or x?. Like RE2, it merges two repetitions of one x with equal flags.
func (p *program) repeat(re *syntax.Regexp, lazy bool) fragment {
	op, sub := re.Op, re.Sub[0]
	for sub.Flags == re.Flags {
		switch sub.Op {
		case op:
		case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
			op = syntax.OpStar
		default:
			return p.repeated(op, p.compile(sub), lazy)
		}
		sub = sub.Sub[0]
	}
	return p.repeated(op, p.compile(sub), lazy)
}

func (p *program) repeated(op syntax.Op, a fragment, lazy bool) fragment {
	switch op {
	case syntax.OpStar:
		return p.star(a, lazy)
	case syntax.OpPlus:
		return p.plus(a, lazy)
	default:
		return p.quest(a, lazy)
	}
}

// literal compiles a character. It takes one instruction for each byte: one byte in Latin-1, and one to four bytes
// in UTF-8.
func (p *program) literal(r rune) fragment {
	switch {
	case p.encoding == UTF8:
		return p.runes([]rune{r, r})
	case r > maxLatin1:
		return fragment{}
	}
	return p.step(false)
}

// class compiles a set of characters. In Latin-1, it takes one instruction for each range. A set that has the upper
// and lower case of the same letters takes one instruction for both.
func (p *program) class(ranges []rune) fragment {
	if p.encoding == UTF8 {
		return p.runes(ranges)
	}
	folds := foldsASCII(ranges)
	var all fragment
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], min(ranges[i+1], maxLatin1)
		if lo > hi || folds && 'A' <= lo && hi <= 'Z' {
			continue
		}
		all = p.alt(all, p.step(lo == 0 && hi == maxLatin1))
	}
	return all
}

func foldsASCII(ranges []rune) bool {
	var upper, lower uint32
	for i := 0; i < len(ranges); i += 2 {
		for r := rune(0); r < 26; r++ {
			if ranges[i] <= 'A'+r && 'A'+r <= ranges[i+1] {
				upper |= 1 << r
			}
			if ranges[i] <= 'a'+r && 'a'+r <= ranges[i+1] {
				lower |= 1 << r
			}
		}
	}
	return upper == lower
}
