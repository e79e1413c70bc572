package validate

import (
	"slices"
	"sync"

	"xdspub/diag"
	"xdspub/xds"
)

// maxFindings bounds the findings of a Run, of each severity.
const maxFindings = 100_000

// findings are what rules found. Those of rules with Unused stand apart.
type findings struct {
	always, unused diag.Bounded
}

func newFindings(most int) *findings {
	return &findings{diag.NewBounded(most), diag.NewBounded(most)}
}

// of is where the findings of a rule belong.
func (f *findings) of(r *Rule) *diag.Bounded {
	if r.Unused {
		return &f.unused
	}
	return &f.always
}

// rest returns findings with f's remaining room.
func (f *findings) rest() *findings { return &findings{f.always.Rest(), f.unused.Rest()} }

func (f *findings) take(other *findings) {
	if other == nil {
		return
	}
	f.always.Take(&other.always)
	f.unused.Take(&other.unused)
}

// empty reports whether nothing was found.
func (f *findings) empty() bool { return !f.full() && f.size() == 0 }

// size is how many findings are kept.
func (f *findings) size() int { return f.always.Len() + f.unused.Len() }

// full reports whether something was left out.
func (f *findings) full() bool { return f != nil && (f.always.Full() || f.unused.Full()) }

// list returns the findings of a Snapshot. list leaves out findings of rules with Unused if an unread part may
// name the reported resource.
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

// inOrder joins findings of parts that are judged concurrently. The order is the order of the parts, so that
// the limit keeps the same findings in every run.
type inOrder struct {
	mu    sync.Mutex
	all   *findings
	parts []*findings // judged parts that all lacks
	next  int         // part that all lacks
}

// begin returns the findings for a part to fill, with as much room as the whole has left.
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
