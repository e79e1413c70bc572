package pipeline

import (
	"slices"
	"time"

	"xdspub/diff"
	"xdspub/publish"
	"xdspub/xds"
)

// planned is what the last full plan came to.
type planned struct {
	snapshot *xds.Snapshot
	watches  []string
	// silent tells that it had no findings.
	silent bool
}

// planEdit plans the most frequent change in time that does not depend on the size of the
// tree: the last plan is published, and since then only the content of endpoint
// assignments, route configurations or runtime layers was edited, each in a file of its
// own, and no transition rule goes by them. The plan is the one that Plan would make,
// without the files that stay. It is nil for all other changes.
func (p *Pipeline) planEdit(s *xds.Snapshot, st *state, now time.Time) (*Plan, error) {
	if !p.out.Trusts() || !p.planned.silent || st.manifest.Snapshot != p.planned.snapshot.ID() {
		return nil, nil
	}
	if change, known := s.Since(p.planned.snapshot); !known || slices.ContainsFunc(change.Added, diff.UsesSingletons) {
		return nil, nil
	}
	files, delivery, ok := p.renderer.Edited(s)
	if !ok {
		return nil, nil
	}
	refused, err := publish.ReadRefused(p.options.Out)
	if err != nil {
		return nil, err
	}
	p.planned.snapshot = s
	listeners := p.derive(xds.Listener, st.listeners)
	m := st.manifest
	m.Layout, m.Files, m.Resources = 0, publish.PublishedFiles{}, counts(s) // Publish sets the first two
	if len(m.Retired) == 0 {
		m.Retired = nil
	}
	m.Snapshot, m.DrainingWatches = s.ID(), st.drainingWatches(listeners.watches, p.planned.watches, now.Add(-p.options.TrimDelay), now)
	changed := s.ID() != st.manifest.Snapshot
	if changed {
		m.Published = now
	}
	return &Plan{
		ID: s.ID(), Held: refused.Holds(s.ID(), delivery), snapshot: s, delivery: delivery, changed: changed,
		Change: publish.Plan{
			Steps: steps(files, nil, st, p.derive(xds.Cluster, st.clusters).named, listeners.named, nil),
			Gap:   p.options.StepGap, Manifest: m,
		},
	}, nil
}
