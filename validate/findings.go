package validate

import (
	"slices"
	"sync"

	"xdspub/diag"
	"xdspub/xds"
)

// maxFindings bounds the findings of a Run, of each severity.
const maxFindings = 100_000

// findings are what rules found, those apart that say nothing where some resources could
// not be read.
type findings struct {
	always, whole diag.Bounded
}

func newFindings(most int) *findings {
	return &findings{diag.NewBounded(most), diag.NewBounded(most)}
}

// of is where the findings of a rule belong.
func (f *findings) of(r *Rule) *diag.Bounded {
	if r.Whole {
		return &f.whole
	}
	return &f.always
}

// rest has the room that f still has.
func (f *findings) rest() *findings { return &findings{f.always.Rest(), f.whole.Rest()} }

func (f *findings) take(other *findings) {
	if other == nil {
		return
	}
	f.always.Take(&other.always)
	f.whole.Take(&other.whole)
}

// empty reports whether nothing was found.
func (f *findings) empty() bool { return !f.full() && f.size() == 0 }

// size is how many findings are kept.
func (f *findings) size() int { return f.always.Len() + f.whole.Len() }

// full reports whether something was left out.
func (f *findings) full() bool { return f != nil && (f.always.Full() || f.whole.Full()) }

// list is what is to be said of a Snapshot. What may be found only because something could not
// be read is left out.
func (f *findings) list(a *answers, rules []*Rule) diag.List {
	all := f.always
	if !a.options.Partial {
		lost := func(t *xds.Type) bool {
			return slices.ContainsFunc(a.of(t), func(r *xds.Resource) bool { return r.Lost != nil })
		}
		if f.whole.Len() > 0 && slices.ContainsFunc(allTypes, lost) {
			unused := unusedCodes(rules)
			f.whole.Drop(func(d diag.Diagnostic) bool { return slices.Contains(unused, diag.CodeOf(d.Code)) })
		}
		all.Take(&f.whole)
	}
	return all.List(diag.Position{}, "from the rules").Sort()
}

// unusedCodes are the codes of the rules that report what nothing names.
func unusedCodes(rules []*Rule) (codes []string) {
	for _, r := range rules {
		if r.Unused {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

// inOrder puts together what is found in parts that are judged side by side: in the order
// of the parts, so that the same findings are kept whoever is faster.
type inOrder struct {
	mu    sync.Mutex
	all   *findings
	parts []*findings // that are judged and not in all yet
	next  int         // part that all lacks
}

// begin is what a part collects its findings in. It has no more room than all have.
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
