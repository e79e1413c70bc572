package diag

import "fmt"

// TooMany is the code of the finding that stands for unlisted findings.
var TooMany = Code{Name: "too-many-findings", Doc: `Too many findings: the list is incomplete.

A failed script, or an attack, can cause millions of findings. xdspub lists at most 10,000 errors
and 10,000 warnings of a file, and 100,000 each of a source tree and of all rules; a finding with
kilobytes of text counts as several. It does not read a file beyond its last listed error. Errors
that are not listed keep the snapshot from being published like any other.`}

// Bounded collects findings up to a limit for each severity, and records that more were added.
type Bounded struct {
	most int
	list List
	size [Info + 1]int
	left [Info + 1]bool
}

// NewBounded returns a Bounded that keeps at most that many errors, and as many other findings.
func NewBounded(most int) Bounded { return Bounded{most: most} }

// Rest returns an empty Bounded with b's remaining room.
func (b *Bounded) Rest() Bounded { return Bounded{most: b.most, size: b.size} }

// HasRoom reports whether one more finding of a severity is kept.
func (b *Bounded) HasRoom(s Severity) bool { return b.size[s] < b.most }

// Leave notes that a finding was left out.
func (b *Bounded) Leave(s Severity) { b.left[s] = true }

// Add keeps findings as far as there is room for them.
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

// Take adds the findings of another Bounded, and notes which kinds that one left out.
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

// List returns the kept findings in the order of Add and, for each severity beyond its limit, a finding of
// TooMany at a position. where names the origin of the findings: "in this file".
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
