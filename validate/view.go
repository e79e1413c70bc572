package validate

import (
	"slices"
	"sync"

	"xdspub/diag"
	"xdspub/xds"
)

// View is a Snapshot as rules see it. It records each lookup of a rule with the answer. A Judge judges the resource
// again when an answer changes.
type View struct {
	from     *answers
	recorder *notes // nil if nothing is recorded
}

// question is what a rule looks up.
type question struct {
	about questionAbout
	t     *xds.Type
	index anyIndex
	name  string
}

type questionAbout uint8

const (
	aboutResource  questionAbout = iota // → *xds.Resource
	aboutPresence                       // does a resource of the type and name exist? → bool
	aboutComplete                       // is the Snapshot complete for a type? → bool
	aboutNamed                          // all resources of a type and name → []*xds.Resource
	aboutType                           // all resources of a type → []*xds.Resource
	aboutNearest                        // the existing name most like a name → string
	aboutIndex                          // entries of an Index under a name → list
	aboutFirst                          // the first entry of an Index under a name → firstOf
	aboutTable                          // the text of a Table under a name → string
	aboutCollected                      // the messages that a rule with Snapshot collects; only in a Call
)

// answers is a Snapshot with the cached answers to lookups.
type answers struct {
	*xds.Snapshot
	options Options
	words   map[*xds.Type]func() *diag.Candidates
	// made caches the Indexes and Tables. behind lists the Indexes and Tables that are still those of the previous
	// Snapshot; edit is the difference from that Snapshot.
	made   *sync.Map
	behind map[anyIndex]bool
	edit   *edit
}

func newAnswers(s *xds.Snapshot, o Options) *answers {
	a := &answers{Snapshot: s, options: o, words: make(map[*xds.Type]func() *diag.Candidates), made: new(sync.Map)}
	for _, t := range xds.Types {
		a.words[t] = sync.OnceValue(func() *diag.Candidates {
			var names []string
			for _, r := range s.Of(t) {
				if r.Name != "" {
					names = append(names, r.Name)
				}
			}
			return diag.NewCandidates(names)
		})
	}
	return a
}

// newAnswersAfter returns the answers after an edit. It takes over the caches of the previous Snapshot. Nobody may
// use the answers of that Snapshot again.
func newAnswersAfter(s *xds.Snapshot, o Options, e *edit, made *sync.Map) *answers {
	a := newAnswers(s, o)
	a.made, a.edit, a.behind = made, e, make(map[anyIndex]bool)
	made.Range(func(x, _ any) bool {
		a.behind[x.(anyIndex)] = true
		return true
	})
	return a
}

// bringAll updates all caches to the Snapshot of a. The Facts of its new resources must be known.
func (a *answers) bringAll() {
	for len(a.behind) > 0 {
		for x := range a.behind {
			x.bring(a)
		}
	}
}

// of returns the resources of a type. The bootstrap is the only resource of the type xds.Bootstrap.
func (a *answers) of(t *xds.Type) []*xds.Resource {
	if t != xds.Bootstrap {
		return a.Of(t)
	}
	if a.options.Bootstrap == nil {
		return nil
	}
	return []*xds.Resource{a.options.Bootstrap}
}

// to answers a question that is not about an Index or a Table.
func (a *answers) to(q question) any {
	switch q.about {
	case aboutResource:
		return a.Lookup(q.t, q.name)
	case aboutPresence:
		return a.Lookup(q.t, q.name) != nil
	case aboutComplete:
		return !slices.Contains(a.options.Incomplete, q.t)
	case aboutNamed:
		return a.Named(xds.Key{Type: q.t, Name: q.name})
	case aboutType:
		return a.Of(q.t)
	default:
		return a.words[q.t]().Nearest(q.name)
	}
}

// still reports whether the answer to a question equals the earlier answer.
func (a *answers) still(q question, was any) bool {
	if q.index != nil {
		return q.index.still(a, q, was)
	}
	if list, ok := was.([]*xds.Resource); ok {
		return slices.Equal(list, a.to(q).([]*xds.Resource))
	}
	return was == a.to(q)
}

func ask[T any](v View, q question) T {
	answer := v.from.to(q)
	v.recorder.note(q, answer)
	return answer.(T)
}

// Lookup returns the resource of a type and name, or nil.
func (v View) Lookup(t *xds.Type, name string) *xds.Resource {
	return ask[*xds.Resource](v, question{about: aboutResource, t: t, name: name})
}

// Has reports whether the Snapshot has a resource of a type and name. To report a missing resource, a rule calls
// Lacks.
func (v View) Has(t *xds.Type, name string) bool {
	return ask[bool](v, question{about: aboutPresence, t: t, name: name})
}

// Lacks reports whether the client certainly has no resource of a type and name: the Snapshot is complete and does
// not have the resource.
func (v View) Lacks(t *xds.Type, name string) bool { return !v.Has(t, name) && v.Complete(t) }

// Complete reports whether the Snapshot has all of the client's resources of type t.
func (v View) Complete(t *xds.Type) bool {
	return ask[bool](v, question{about: aboutComplete, t: t})
}

// Named returns all resources of a type and name, in the order of the source.
func (v View) Named(t *xds.Type, name string) []*xds.Resource {
	return ask[[]*xds.Resource](v, question{about: aboutNamed, t: t, name: name})
}

// Of returns the resources of type t, sorted by name.
func (v View) Of(t *xds.Type) []*xds.Resource {
	return ask[[]*xds.Resource](v, question{about: aboutType, t: t})
}

// All returns every resource except the bootstrap, in the order of xds.Types, then by name.
func (v View) All() []*xds.Resource {
	var all []*xds.Resource
	for _, t := range xds.Types {
		all = append(all, v.Of(t)...)
	}
	return all
}

// Nearest returns the name most like name among the resources of type t, or "". Nearest is for the help of a
// finding: neither the finding nor its message may depend on the answer.
func (v View) Nearest(t *xds.Type, name string) string {
	q := question{about: aboutNearest, t: t, name: name}
	near := v.from.to(q).(string)
	v.recorder.hint(q, near)
	return near
}

// FromBootstrap returns Snapshot.FromBootstrap.
func (v View) FromBootstrap() bool { return v.from.FromBootstrap() }

// Serves returns Snapshot.Serves, and records the lookups that the answer depends on.
func (v View) Serves(s xds.Subscription) bool {
	if s.Target == xds.Secret {
		v.Has(s.Target, s.Name)
	}
	return v.from.Serves(s)
}

// Answer returns Snapshot.Answer, and records the lookups that the answer depends on.
func (v View) Answer(s xds.Subscription) *xds.Resource {
	v.Lookup(s.Target, s.Name)
	v.Serves(s)
	return v.from.Answer(s)
}
