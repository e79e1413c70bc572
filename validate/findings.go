package validate

import (
	"slices"
	"sync"

	"xdspub/diag"
	"xdspub/xds"
)

// maxFindings is the largest number of findings of each severity in a Run.
const maxFindings = 100_000

// findings holds the findings of rules. unused holds the findings of rules with Unused, always those of all other
// rules.
type findings struct {
	always, unused diag.Bounded
}

func newFindings(most int) *findings {
	return &findings{diag.NewBounded(most), diag.NewBounded(most)}
}

// of returns the list for the findings of a rule.
func (f *findings) of(r *Rule) *diag.Bounded {
	if r.Unused {
		return &f.unused
	}
	return &f.always
}

// rest returns an empty findings that has room for as many findings as f.
func (f *findings) rest() *findings { return &findings{f.always.Rest(), f.unused.Rest()} }

func (f *findings) take(other *findings) {
	if other == nil {
		return
	}
	f.always.Take(&other.always)
	f.unused.Take(&other.unused)
}

// empty reports whether the rules found nothing.
func (f *findings) empty() bool { return !f.full() && f.size() == 0 }

// size returns the number of findings in f.
func (f *findings) size() int { return f.always.Len() + f.unused.Len() }

// full reports whether f left out a finding at the limit.
func (f *findings) full() bool { return f != nil && (f.always.Full() || f.unused.Full()) }

// list returns the findings of a Snapshot. It leaves out the findings of rules with Unused if the Snapshot is
// incomplete or a part of a resource could not be read: the missing part may refer to the resource that the finding
// reports.
func (f *findings) list(a *answers) diag.List {
	all := f.always
	lost := func(t *xds.Type) bool {
		return slices.ContainsFunc(a.of(t), func(r *xds.Resource) bool { return r.Lost != nil })
	}
	if f.unused.Len() > 0 && len(a.options.Incomplete) == 0 && !slices.ContainsFunc(allTypes, lost) {
		all.Take(&f.unused)
	}
	return all.List(diag.Position{}, "from the rules").Sort()
}

// inOrder joins the findings of parts that several goroutines judge. It joins the parts in their order, so the
// limit keeps the same findings in every run.
type inOrder struct {
	mu    sync.Mutex
	all   *findings
	parts []*findings // finished parts that are not in all yet, by index
	next  int         // the index of the first part that is not in all
}

// begin returns an empty findings for one part. It has room for as many findings as all.
func (o *inOrder) begin() *findings {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.rest()
}

func (o *inOrder) end(i int, part *findings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts[i] = part
	for ; o.next < len(o.parts) && o.parts[o.next] != nil; o.next++ {
		o.all.take(o.parts[o.next])
		o.parts[o.next] = nil
	}
}
