package diag

import "fmt"

// TooMany is the code of the finding that says that findings were left out.
var TooMany = Code{Name: "too-many-findings", Doc: `Too many findings: the list is incomplete.

A failed script, or an attack, can cause millions of findings. xdspub lists at most 10,000 errors
and 10,000 warnings of a file, and 100,000 each of a source tree and of all rules; a finding with
kilobytes of text counts as several. It does not read a file beyond its last listed error. Errors
that are not listed keep the snapshot from being published like any other.`}

// Bounded collects findings up to a limit for each severity, and records whether it left out findings.
type Bounded struct {
	most int
	list List
	size [Info + 1]int
	left [Info + 1]bool
}

// NewBounded returns a Bounded that keeps at most most findings of each severity. A finding with kilobytes of text
// counts as several findings.
func NewBounded(most int) Bounded { return Bounded{most: most} }

// Rest returns an empty Bounded that keeps as many findings as b still has room for.
func (b *Bounded) Rest() Bounded { return Bounded{most: b.most, size: b.size} }

// HasRoom reports whether b would keep one more finding of a severity.
func (b *Bounded) HasRoom(s Severity) bool { return b.size[s] < b.most }

// Leave records that a finding of a severity was left out.
func (b *Bounded) Leave(s Severity) { b.left[s] = true }

// Add adds findings, and leaves out those beyond the limit.
func (b *Bounded) Add(list ...Diagnostic) {
	for _, d := range list {
		if !b.HasRoom(d.Severity) {
			b.Leave(d.Severity)
			continue
		}
		b.size[d.Severity] += 1 + (len(d.Message)+len(d.Help)+len(d.Path))>>10
		b.list = append(b.list, d)
	}
}

// Take adds the findings of another Bounded, and records the severities of which the other left out findings.
func (b *Bounded) Take(other *Bounded) {
	b.Add(other.list...)
	for s, left := range other.left {
		b.left[s] = b.left[s] || left
	}
}

// Full reports whether a finding was left out.
func (b *Bounded) Full() bool { return b.left != [Info + 1]bool{} }

// Len returns the number of findings that are kept.
func (b *Bounded) Len() int { return len(b.list) }

// List returns the findings in the order of Add. For each severity with findings that were left out, it adds a
// finding of TooMany at the position at. where tells where the findings come from, such as "in this file".
func (b *Bounded) List(at Position, where string) List {
	list := b.list
	for s := Error; s <= Info; s++ {
		if !b.left[s] {
			continue
		}
		d := Diagnostic{Code: TooMany.Name, Severity: s, Position: at, Message: fmt.Sprintf("too many %ss %s: only %d are listed", s, where, list.Count(s))}
		if s == Error {
			d.Help = "correct these first, then the others are listed"
		}
		list = append(list[:len(list):len(list)], d)
	}
	return list
}
