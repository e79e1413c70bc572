// Package re2 judges a regular expression as Envoy does: whether Envoy's engine accepts the pattern, and how
// large the compiled program is, because Envoy limits the size. Envoy 1.40.0 runs RE2 in Latin-1: pattern and
// subject are bytes. Envoy through 1.38, and CEL in every release, run RE2 in UTF-8, so that [^/] takes eight
// instructions instead of two.
//
//	program, err := re2.Compile(`/users/[^/]+`, re2.Latin1)
//
// The parser is regexp/syntax, a descendant of RE2's own parser; pattern.go settles the differences. The size
// follows from RE2's own steps. testdata/sizes.json records Envoy's answers to 891 patterns.
package re2

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Program describes a compiled regular expression.
type Program struct {
	// Size is the number of instructions. Envoy compares it with max_program_size, which is 100 by default.
	Size int
	// Exact is false if Size may be larger than RE2's size.
	Exact bool
	// Groups is the number of capturing groups.
	Groups int
	// SplitsCharacters means that a character outside ASCII is in a class, or is repeated. RE2 sees its bytes: [é]
	// matches either byte, and é+ repeats the second byte.
	SplitsCharacters bool
}

// TooLarge reports whether the program certainly has more instructions than limit. If Size is not exact, RE2's size
// is more than three quarters of Size.
func (p Program) TooLarge(limit int) bool {
	return p.Size > limit && (p.Exact || p.Size > limit+limit/3)
}

// Encoding is the encoding of a pattern.
type Encoding int

const (
	// Latin1 reads each byte as a character.
	Latin1 Encoding = iota
	// UTF8 reads a character outside of ASCII as several bytes.
	UTF8
)

const maxLatin1 = 0xff

// Compile compiles a pattern. Its error is the reason why Envoy refuses the pattern.
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

// latin1 returns a text with a character for each byte.
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

// approximate reports whether size may be too large for re. RE2 uses one instruction for an anchor that begins
// several alternatives or is repeated. It also folds the case of ASCII letters only.
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

// size returns the number of instructions of re. It does what compile.cc and prog.cc of RE2 do: it makes the same
// instructions, and then flattens alternatives into lists.
func size(re *syntax.Regexp, in Encoding) int {
	if in == UTF8 {
		re = unfold(re)
	}
	re = coalesce(afterPrefix(re)).Simplify()
	re, anchored := dropAnchor(re, syntax.OpBeginText, 0)
	re, _ = dropAnchor(re, syntax.OpEndText, 0)
	p := &program{encoding: in, insts: []inst{{op: opEnd}}} // instruction 0 is the failure
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
