// Package diag defines findings. A finding is a Diagnostic: it has a code, a severity, a place in a file, a message
// that names the fault, and help that names the remedy. All stages report findings as Diagnostics, and printers
// write a List as text or JSON. Package diag knows neither xDS nor YAML.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity decides what happens to the Snapshot that a Diagnostic is about.
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

// StandardInput is the name of standard input in findings.
const StandardInput = "<stdin>"

// Position is a place in a file. Line and Column count from 1, and Column counts characters (runes). 0 means
// unknown.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String returns file:line:column, without unknown parts.
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

// End is the end of a Range: the place after its last character, counted as in a Position.
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

// Resource identifies the xDS resource of a Diagnostic by its type URL and its name. Both are empty for a finding
// about a file that could not be read that far.
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
	// Code is the code of the rule in kebab-case. It never changes, because users search for it. For a rule with
	// several checks, Code is a sub-code.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Position and End are the beginning and the end of the key or value.
	Position
	End
	Resource Resource `json:"resource"`
	// Path is the path of the field in the resource, such as load_assignment.endpoints[0].lb_endpoints[1]. A path
	// goes on through the content of an Any.
	Path string `json:"path"`
	// Message names the fault, without a capital and a full stop.
	Message string `json:"message"`
	// Help names the remedy. It may be empty.
	Help    string    `json:"help"`
	Related []Related `json:"related"`
	// Fixes are alternative changes of the source. Each Fix alone removes the fault.
	Fixes []Fix `json:"fixes"`
	// Sensitive means that the source line may contain a secret, and is never shown.
	Sensitive bool `json:"-"`
}

// String returns the first line that WriteText would print.
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

// Sort sorts the list by position, severity, code, message and path, and removes findings that repeat another
// finding. A value of a YAML anchor can cause a finding in each field that uses the anchor: Sort keeps the first of
// them. The result does not depend on the order of the list.
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
			// if findings are equal otherwise, always keep the same one
			slices.CompareFunc(a.Related, b.Related, func(a, b Related) int { return a.Position.Compare(b.Position) }),
		)
	})
	return slices.CompactFunc(l, func(a, b Diagnostic) bool {
		if a.Position != b.Position || a.Code != b.Code || a.Message != b.Message {
			return false
		}
		if a.Line == 0 { // without a line, the field distinguishes places
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

// Code documents the findings of one code, for docs/rules and for the commands rules and explain.
type Code struct {
	Name     string
	Severity Severity
	// Doc is a summary line, an empty line, and the reason.
	Doc string
	// Checks are the checks with sub-codes; nil for a code without sub-codes.
	Checks []Check
	// Family names the subject of the code, and its page in docs/rules.
	Family string
	// URL is the address of the code's documentation, or empty.
	URL string
}

// InFamily returns copies of codes with the Family family.
func InFamily(family string, codes []Code) []Code {
	list := slices.Clone(codes)
	for i := range list {
		list[i].Family = family
	}
	return list
}

// Names returns the names of codes, each followed by its sub-codes.
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
