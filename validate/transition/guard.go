package transition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/params"
)

// Guard bounds what a change may remove. Envoy accepts each removal. But a large removal is mostly a mistake, such as a
// failed generator, an unfinished checkout or a mistyped mapping of nodes.
type Guard struct {
	// MaxRemoval is the largest share of the published resources of a type, in percent, that a change may remove.
	MaxRemoval int
	refused    map[Refused]bool
}

// Refused is a removal, and the guard that has refused the removal.
type Refused struct {
	Code string // of the guard
	xds.Key
	For params.Constraints // the constraints of the resource; none in published files
}

// Refused returns what the guards have refused.
func (g *Guard) Refused() []Refused { return slices.Collect(maps.Keys(g.refused)) }

// ID identifies what the guards have refused: each guard with the resources, and nothing else of the change. ID returns
// "" if the guards have refused nothing.
func (g *Guard) ID() string {
	if len(g.refused) == 0 {
		return ""
	}
	var lines []string
	for r := range g.refused {
		lines = append(lines, fmt.Sprintf("%q %q %q %q\n", r.Code, r.Type.API, r.Name, r.For))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "")))
	return hex.EncodeToString(sum[:8])
}

// IsGuard reports whether a guard has a code.
func IsGuard(code string) bool {
	return slices.ContainsFunc(Rules, func(r *Rule) bool { return r.Code == code && r.Guards })
}

// refuse reports the finding of a guard about removed resources, or about resources that lose their endpoints.
func (p *Pass) refuse(keys []xds.Key, f Finding) {
	g := p.guard
	if g.refused == nil {
		g.refused = make(map[Refused]bool)
	}
	for _, k := range keys {
		r := Refused{Code: p.rule.Code, Key: k}
		if is := p.New.Lookup(k.Type, k.Name); is != nil {
			r.For = is.For
		} else if s, ok := p.Old.(Served); ok {
			r.For = s.Lookup(k.Type, k.Name).For
		}
		g.refused[r] = true
	}
	f.Help = "look for an unfinished checkout, a failed generator or a mistyped parameter"
	p.Report(f)
}

// fewResources is the largest number of published resources of a type of which a change may remove any share.
const fewResources = 10

// exceeds reports whether a change removes too many of the published resources of a type.
func (g *Guard) exceeds(removed, published int) bool {
	return published > fewResources && removed*100 > published*g.MaxRemoval
}

// Removal is what a change removes from the published resources of a type.
type Removal struct {
	// Names are the names of the removed resources, sorted.
	Names []string
	// Published is the number of published resources, without retired ones.
	Published int
}

// mostNamed is the largest number of names in a finding of a guard.
const mostNamed = 10

// named returns the first names, quoted, and the number of further names.
func named(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", diag.Printable(name))
	}
	return diag.Few(quoted, mostNamed)
}

// keepsGuards reports whether the guards certainly allow a change (Keeps).
func keepsGuards(changes []xds.Edited, s *xds.Snapshot, g *Guard) bool {
	removed, added := make(map[*xds.Type]int), make(map[*xds.Type]int)
	for _, e := range changes {
		t := e.Key().Type
		switch {
		case e.Is == nil && (t == xds.Listener || t == xds.LocalityEndpoints || s.Restricted() || !e.Was.For.Equal(params.Constraints{})):
			return false // a kind of clients may have few other resources
		case e.Is == nil:
			removed[t]++
		case mayLoseEndpoints(e, s):
			return false
		case e.Was == nil:
			added[t]++
		case !e.Is.ForSame(e.Was):
			return false
		}
	}
	for t, n := range removed {
		if g.exceeds(n, len(s.Of(t))+n-added[t]) {
			return false
		}
	}
	return true
}

// mayLoseEndpoints reports whether a change that leads to the Snapshot s may take the last endpoint from a cluster.
func mayLoseEndpoints(e xds.Edited, s *xds.Snapshot) bool {
	t := e.Key().Type
	if t != xds.Cluster && t != xds.Endpoints || e.Is.HasEndpoints() {
		return false
	}
	if e.Was == nil { // the clusters of an assignment, and the clients of a variant, may have had endpoints elsewhere
		return t == xds.Endpoints || s.Restricted()
	}
	return e.Was.HasEndpoints() || !slices.Equal(endpointsOf(e.Was), endpointsOf(e.Is))
}

// endpointsOf returns what a cluster, or an assignment, subscribes to for its endpoints.
func endpointsOf(r *xds.Resource) []xds.Key {
	return append(asked(r, xds.Endpoints), asked(r, xds.LocalityEndpoints)...)
}

// asked returns the resources of a type to which a resource subscribes. It does not decode an unloaded resource without
// such a subscription.
func asked(r *xds.Resource, t *xds.Type) (of []xds.Key) {
	if !r.AsksFor(t) {
		return nil
	}
	for _, s := range r.Facts().Subscriptions {
		if s.Target == t {
			of = append(of, xds.Key{Type: t, Name: s.Name})
		}
	}
	return of
}
