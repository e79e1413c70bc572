package re2

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// unfold replaces a character by a class if case does not matter and a form of the character is outside ASCII: k
// also stands for the Kelvin sign.
func unfold(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase != 0 {
		return unfoldLiteral(re)
	}
	if len(re.Sub) == 0 {
		return re
	}
	unfolded := *re
	unfolded.Sub = nil
	for _, sub := range re.Sub {
		if sub = unfold(sub); re.Op == syntax.OpConcat && sub.Op == syntax.OpConcat {
			unfolded.Sub = append(unfolded.Sub, sub.Sub...)
		} else {
			unfolded.Sub = append(unfolded.Sub, sub)
		}
	}
	return &unfolded
}

func unfoldLiteral(re *syntax.Regexp) *syntax.Regexp {
	var parts []*syntax.Regexp
	for _, r := range re.Rune {
		class := []rune{r, r}
		for folded := unicode.SimpleFold(r); folded != r; folded = unicode.SimpleFold(folded) {
			class = append(class, folded, folded)
		}
		slices.Sort(class)
		switch last := len(parts) - 1; {
		case len(class) > 2 && class[len(class)-1] > unicode.MaxASCII:
			parts = append(parts, &syntax.Regexp{Op: syntax.OpCharClass, Flags: re.Flags, Rune: class})
		case last >= 0 && parts[last].Op == syntax.OpLiteral:
			parts[last].Rune = append(parts[last].Rune, r)
		default:
			parts = append(parts, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: []rune{r}})
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: parts}
}

// afterPrefix returns the part of ^literal… after the literal. RE2 compares the literal without instructions, and
// compiles only the part after it, without an anchor.
func afterPrefix(re *syntax.Regexp) *syntax.Regexp {
	if re.Op != syntax.OpConcat {
		return re
	}
	i := 0
	for i < len(re.Sub) && re.Sub[i].Op == syntax.OpBeginText {
		i++
	}
	if i == 0 || i == len(re.Sub) || re.Sub[i].Op != syntax.OpLiteral {
		return re
	}
	if i == len(re.Sub)-1 {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: re.Sub[i+1:]}
}

// dropAnchor removes an anchor from the beginning or the end of re. It returns true if re had the anchor there. RE2
// makes the anchor a property of the program.
func dropAnchor(re *syntax.Regexp, anchor syntax.Op, depth int) (*syntax.Regexp, bool) {
	const deepest = 4
	if depth == deepest {
		return re, false
	}
	at := 0
	switch re.Op {
	case anchor:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, true
	case syntax.OpConcat:
		if anchor == syntax.OpEndText {
			at = len(re.Sub) - 1
		}
	case syntax.OpCapture:
	default:
		return re, false
	}
	sub, dropped := dropAnchor(re.Sub[at], anchor, depth+1)
	changed := *re
	changed.Sub = slices.Clone(re.Sub)
	changed.Sub[at] = sub
	return &changed, dropped
}

// coalesce joins neighbours that repeat the same character or class, as in a*a+ or .*.*, at all depths.
func coalesce(re *syntax.Regexp) *syntax.Regexp {
	if len(re.Sub) == 0 {
		return re
	}
	joined := *re
	joined.Sub = nil
	for _, sub := range re.Sub {
		joined.Sub = append(joined.Sub, coalesce(sub))
	}
	if re.Op != syntax.OpConcat {
		return &joined
	}
	for i := range joined.Sub[1:] {
		a, b := joined.Sub[i], joined.Sub[i+1]
		if rest, all := join(a, b); all != nil {
			joined.Sub[i], joined.Sub[i+1] = all, rest
			if rest.Op == syntax.OpEmptyMatch {
				joined.Sub[i], joined.Sub[i+1] = rest, all
			}
		}
	}
	return &joined
}

// join joins a with the beginning of b to one repetition. It returns the rest of b and the repetition, or nil if
// both have different characters.
func join(a, b *syntax.Regexp) (rest, all *syntax.Regexp) {
	unit, from, to, ok := repetition(a)
	if !ok {
		return nil, nil
	}
	rest = &syntax.Regexp{Op: syntax.OpEmptyMatch}
	n, m := 1, 1
	if again, f, t, ok := repetition(b); ok && again.Equal(unit) && (a.Flags^b.Flags)&syntax.NonGreedy == 0 {
		n, m = f, t
	} else if unit.Op == syntax.OpLiteral && b.Op == syntax.OpLiteral && (unit.Flags^b.Flags)&syntax.FoldCase == 0 && b.Rune[0] == unit.Rune[0] {
		for n < len(b.Rune) && b.Rune[n] == unit.Rune[0] {
			n++
		}
		m = n
		if n < len(b.Rune) {
			left := *b
			left.Rune = b.Rune[n:]
			rest = &left
		}
	} else if !b.Equal(unit) {
		return nil, nil
	}
	if to < 0 || m < 0 {
		m, to = -1, 0
	}
	return rest, &syntax.Regexp{Op: syntax.OpRepeat, Flags: a.Flags, Sub: []*syntax.Regexp{unit}, Min: from + n, Max: to + m}
}

// repetition returns the single character or class that re repeats, and the smallest and largest number of
// repetitions; -1 means no limit.
func repetition(re *syntax.Regexp) (unit *syntax.Regexp, from, to int, ok bool) {
	switch re.Op {
	case syntax.OpStar:
		from, to = 0, -1
	case syntax.OpPlus:
		from, to = 1, -1
	case syntax.OpQuest:
		from, to = 0, 1
	case syntax.OpRepeat:
		from, to = re.Min, re.Max
	default:
		return nil, 0, 0, false
	}
	unit = re.Sub[0]
	switch unit.Op {
	case syntax.OpLiteral:
		return unit, from, to, len(unit.Rune) == 1
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return unit, from, to, true
	}
	return nil, 0, 0, false
}
