// Package re2 says what Envoy makes of a regular expression: whether its engine
// takes the pattern, and how large the program is that it compiles, which Envoy
// limits. Envoy 1.40.0 uses RE2 in Latin-1: a pattern is bytes, and so is what it
// is matched against. Up to 1.38, and in CEL, it is UTF-8: then [^/] is eight
// instructions, not two.
//
//	program, err := re2.Compile(`/users/[^/]+`, re2.Latin1)
//
// The syntax is read by regexp/syntax, which descends from RE2's own parser; what
// the two see differently is settled in pattern.go. The size is found by taking
// RE2's own steps. testdata/sizes.json holds what Envoy told of 891 patterns.
package re2

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Program is what RE2 compiles a pattern into.
type Program struct {
	// Size is the number of instructions, which Envoy holds against
	// max_program_size (100, if not set).
	Size int
	// Exact is false where Size may be too large by a few instructions.
	Exact bool
	// Groups is the number of capturing groups.
	Groups int
	// SplitsCharacters tells that a character outside of ASCII stands in a class or
	// before a repetition. RE2 sees its bytes there: [é] matches either of the two,
	// é+ repeats the second.
	SplitsCharacters bool
}

// TooLarge reports whether the program certainly has more instructions than limit. A few can be too many
// in Size, not a third.
func (p Program) TooLarge(limit int) bool {
	return p.Size > limit && (p.Exact || p.Size > limit+limit/3)
}

// Encoding says what the characters of a pattern are.
type Encoding int

const (
	// Latin1: a character is a byte.
	Latin1 Encoding = iota
	// UTF8: one outside of ASCII is several bytes.
	UTF8
)

const maxLatin1 = 0xff

// Compile compiles a pattern. The error says what Envoy has against it.
func Compile(pattern string, in Encoding) (Program, error) {
	s := scanner{in: pattern, encoding: in}
	if err := s.scan(); err != nil {
		return Program{}, err
	}
	parsed, err := parse(string(s.out), in)
	if err != nil {
		return Program{}, err
	}
	return Program{
		Size:             size(parsed, in),
		Exact:            !approximate(parsed) && !s.approximate,
		Groups:           parsed.MaxCap(),
		SplitsCharacters: s.splits,
	}, nil
}

func parse(pattern string, in Encoding) (*syntax.Regexp, error) {
	read, shown := latin1, fromLatin1
	if in == UTF8 {
		same := func(s string) string { return s }
		read, shown = same, same
	}
	parsed, err := syntax.Parse(read(pattern), syntax.Perl)
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		err = fmt.Errorf("%s: `%s`", e.Code, shown(e.Expr))
	}
	return parsed, err
}

// latin1 makes a character of each byte.
func latin1(bytes string) string {
	runes := make([]rune, len(bytes))
	for i := range len(bytes) {
		runes[i] = rune(bytes[i])
	}
	return string(runes)
}

func fromLatin1(s string) string {
	var bytes []byte
	for _, r := range s {
		bytes = append(bytes, byte(r))
	}
	return string(bytes)
}

// approximate reports whether size can be too large for re: RE2 shares an anchor
// that alternatives start with, or that is repeated, and folds the case of ASCII
// only.
func approximate(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAlternate, syntax.OpRepeat:
		if slices.ContainsFunc(re.Sub, startsWithAnchor) {
			return true
		}
	case syntax.OpCharClass:
		inside := func(r rune) bool { return unicode.MaxASCII < r && r < maxLatin1 }
		if re.Flags&syntax.FoldCase != 0 && slices.ContainsFunc(re.Rune, inside) {
			return true
		}
	}
	return slices.ContainsFunc(re.Sub, approximate)
}

func startsWithAnchor(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	case syntax.OpConcat:
		return startsWithAnchor(re.Sub[0])
	}
	return false
}

// size is the number of instructions of re. It takes the steps of RE2's
// compile.cc and prog.cc: the same instructions, and the same flattening of
// alternatives into lists afterwards.
func size(re *syntax.Regexp, in Encoding) int {
	if in == UTF8 {
		re = unfold(re)
	}
	re = coalesce(afterPrefix(re)).Simplify()
	re, anchored := dropAnchor(re, syntax.OpBeginText, 0)
	re, _ = dropAnchor(re, syntax.OpEndText, 0)
	p := &program{encoding: in, insts: []inst{{op: opEnd}}} // number 0 is the failure
	all := p.compile(re)
	if all.fails() {
		return 1
	}
	start := p.cat(all, fragment{begin: p.add(inst{op: opEnd, match: true})}).begin
	search := start
	if !anchored {
		loop := p.star(p.step(true), true)
		p.patch(loop.out, start)
		search = loop.begin
	}
	p.optimize(start)
	return p.flatten(start, search)
}
