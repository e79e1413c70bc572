// Package diag says what a finding is: a Diagnostic has a code, a severity, a
// place in a file, and words that tell a person what is wrong and what would be
// right. Every stage reports in these terms; the printers turn a List into text
// or JSON. The package knows neither xDS nor YAML.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says what becomes of the Snapshot that a Diagnostic is about.
type Severity int

const (
	// Error refuses the whole Snapshot: nothing is published.
	Error Severity = iota
	// Warning is printed and logged; the Snapshot is published.
	Warning
	// Info is a remark that needs no action.
	Info
)

func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "info"
	}
}

// MarshalText returns the word of a severity: error, warning or info.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word of a severity. Any other text is an error.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{Error, Warning, Info} {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("unknown severity %q", text)
}

// StandardInput is the File of what was read from standard input.
const StandardInput = "<stdin>"

// Position is a place in a file. Line and Column count from 1, columns in
// characters (runes); 0 means that it is not known.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String returns file:line:column, without the parts that are not known.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Compare orders positions by file, line and column.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// End is where a Range ends: behind its last character, counted as in a Position.
type End struct {
	EndLine   int `json:"end_line"`
	EndColumn int `json:"end_column"`
}

// Range is a part of a file: a key, or a value. An empty Range is a place between two characters.
type Range struct {
	Position
	End
}

// PointAt returns the empty Range at a position.
func PointAt(p Position) Range { return Range{p, End{p.Line, p.Column}} }

// Resource names the xDS resource of a Diagnostic: its type URL and its name. Both are empty if the file could
// not be read that far.
type Resource struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// Related is a second place that belongs to a finding, such as the first of two
// resources with one name.
type Related struct {
	Position
	Message string `json:"message"`
}

// Diagnostic is one finding.
type Diagnostic struct {
	// Code is the rule's name in kebab-case, stable for ever: people grep for it. For a rule with several
	// checks, Code is a sub-code.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Position and End are the beginning and the end of the key or value.
	Position
	End
	Resource Resource `json:"resource"`
	// Path is the field inside the resource, as in
	// load_assignment.endpoints[0].lb_endpoints[1]; Any is walked through.
	Path string `json:"path"`
	// Message is what is wrong: a sentence without a capital and full stop.
	Message string `json:"message"`
	// Help is the remedy, or empty.
	Help    string    `json:"help"`
	Related []Related `json:"related"`
	// Fixes are changes of the source. Each of them would end the finding.
	Fixes []Fix `json:"fixes"`
	// Sensitive keeps the source line out of every print: it may hold a key.
	Sensitive bool `json:"-"`
}

// String returns the finding in one line, the first one of WriteText.
func (d Diagnostic) String() string {
	d = d.Shown()
	line := fmt.Sprintf("%s: %s [%s]", d.Severity, d.Message, d.Code)
	if d.Position == (Position{}) {
		return line
	}
	return d.Position.String() + ": " + line
}

// List is findings in any order.
type List []Diagnostic

// Sort orders the list by place, severity, code, message and path, and drops
// findings that say the same thing twice: what several fields or resources take
// from one YAML anchor is reported once, for the first of them. Two runs over one
// input give one order, whichever goroutine reported first.
func (l List) Sort() List {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		return cmp.Or(
			a.Position.Compare(b.Position),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Resource.Type, b.Resource.Type),
			cmp.Compare(a.Resource.Name, b.Resource.Name),
			// Of equal findings, the same one is kept in every run.
			slices.CompareFunc(a.Related, b.Related, func(a, b Related) int { return a.Position.Compare(b.Position) }),
		)
	})
	return slices.CompactFunc(l, func(a, b Diagnostic) bool {
		if a.Position != b.Position || a.Code != b.Code || a.Message != b.Message {
			return false
		}
		if a.Line == 0 { // in a file without lines the field is the place
			return a.Resource == b.Resource && a.Path == b.Path
		}
		return leaf(a.Path) == leaf(b.Path)
	})
}

// leaf returns the last field of a path.
func leaf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// Count returns the number of findings of severity s.
func (l List) Count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// HasErrors reports whether the list has a finding of severity Error, which drops its Snapshot.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Code documents what findings of one code mean, for docs/rules, rules and
// explain.
type Code struct {
	Name     string
	Severity Severity
	// Doc is a summary line, an empty line, and the reason.
	Doc string
	// Checks are the decisions with sub-codes; nil if the code is one decision.
	Checks []Check
	// Family names the subject of the code, and its page in docs/rules.
	Family string
	// URL is the address of the code's documentation; empty if nobody has published it.
	URL string
}

// InFamily returns codes as those of a family.
func InFamily(family string, codes []Code) []Code {
	list := slices.Clone(codes)
	for i := range list {
		list[i].Family = family
	}
	return list
}

// Names returns the names of codes and their sub-codes, in their order.
func Names(codes []Code) (names []string) {
	for _, c := range WithSubCodes(codes) {
		names = append(names, c.Name)
	}
	return names
}

// Summary returns the first line of the Doc.
func (c Code) Summary() string {
	line, _, _ := strings.Cut(c.Doc, "\n")
	return line
}
