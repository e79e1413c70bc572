package planner

import (
	"cmp"
	"slices"
	"time"

	"xdspub/render/publish"
	"xdspub/xds"
)

// manifest returns the record of a publish.
func (c *change) manifest(r *rendered) publish.Manifest {
	m := publish.Manifest{
		Format: c.out.Format().Name, EnvoyPath: c.out.EnvoyPath(), EDSMode: string(EndpointsFile),
		Snapshot: c.id(r.id), Published: c.now, Resources: countsOf(c.s), Revision: c.st.Manifest.Revision, Part: c.part,
	}
	if m.Snapshot == c.st.Manifest.Snapshot {
		m.Published = c.st.Manifest.Published // a repair does not change the time
	}
	if r.target.InlineEndpoints {
		m.EDSMode = string(EndpointsInline)
	}
	if r.target.InlineRoutes {
		m.InlineRoutesBudget = max(c.st.Manifest.InlineRoutesBudget, c.options.InotifyBudget)
	}
	retiredAt := c.st.Manifest.RetiredAt()
	for _, g := range r.retired {
		g.Since = retiredAt[publish.Retired{Cluster: g.Cluster, File: g.File}]
		m.Retired = append(m.Retired, g)
	}
	m.RestrictedSecrets = restrictsSecrets(c.s) || len(m.Retired) > 0 && c.st.Manifest.RestrictedSecrets
	m.DrainingWatches = c.drainingWatches(r)
	return m
}

// restrictsSecrets reports whether a resource with a secret is for some clients only.
func restrictsSecrets(s *xds.Snapshot) bool {
	if !s.Restricted() {
		return false
	}
	for _, t := range xds.Types {
		if slices.ContainsFunc(s.Of(t), func(r *xds.Resource) bool { return !r.For.None() && r.HoldsSecret() }) {
			return true
		}
	}
	return false
}

// countsOf counts the resources of each type.
func countsOf(s *xds.Snapshot) map[string]int {
	n := make(map[string]int)
	for _, t := range xds.Types {
		if of := len(s.Of(t)); of > 0 {
			n[t.API] = of
		}
	}
	return n
}

// draining returns the watches on record that may still drain.
func (c *change) draining() (watches []string) {
	after := c.now.Add(-c.options.TrimDelay)
	for _, d := range c.st.Manifest.DrainingWatches {
		if d.Since.After(after) {
			watches = append(watches, d.Watch)
		}
	}
	return watches
}

// drainingWatches returns the path subscriptions that only published listeners have, and those on
// record that may still drain.
func (c *change) drainingWatches(r *rendered) []publish.DrainingWatch {
	after := c.now.Add(-c.options.TrimDelay)
	var list []publish.DrainingWatch
	had := make(map[string]bool)
	add := func(watch string, since time.Time) {
		_, stays := slices.BinarySearch(r.watches, watch)
		if !stays && since.After(after) && !had[watch] {
			had[watch] = true
			list = append(list, publish.DrainingWatch{Watch: watch, Since: earlier(since, c.now)})
		}
	}
	for _, watch := range r.leaving {
		add(watch, c.now)
	}
	for _, d := range c.st.Manifest.DrainingWatches {
		add(d.Watch, d.Since)
	}
	slices.SortFunc(list, func(a, b publish.DrainingWatch) int { return cmp.Compare(a.Watch, b.Watch) })
	return list
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
