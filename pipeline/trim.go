package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// trimPoll is how often Trim asks Envoys whether draining has ended.
const trimPoll = 5 * time.Second

const (
	// routeTimeout is how long a request that was routed before a change may still need
	// its cluster, where nothing drains: Envoy's router looks it up by name when the
	// filters before it are done, and again for each retry. It is Envoy's default
	// timeout of a route.
	routeTimeout = 15 * time.Second
	// drainSlack is how much longer than the drain time draining may take.
	drainSlack = 2 * time.Second
)

// Trim removes what nothing can use any more: retired clusters, then files that nothing
// names. It reads only what is published, so that no later change, be it under way, refused
// or held, delays it. next is when to call it again; zero where nothing waits.
func (p *Pipeline) Trim(ctx context.Context, d *publish.Dir, now time.Time) (result publish.Result, next time.Time, err error) {
	if err := p.KeepTime(d); err != nil {
		return result, next, err
	}
	m, err := p.startTrimDelays(ctx, d, now)
	if err != nil || len(m.Retired) == 0 {
		return result, next, err
	}
	due, next, err := p.due(ctx, m, now)
	if err != nil || len(due) == 0 {
		return result, next, err
	}
	plan, err := p.trimPlan(due)
	if err != nil {
		return result, next, err
	}
	if kept := len(plan.Manifest.Retired) > len(m.Retired)-len(due); kept && (next.IsZero() || next.After(now.Add(p.options.TrimDelay))) {
		next = now.Add(p.options.TrimDelay)
	}
	if len(plan.Manifest.Retired) == len(m.Retired) {
		return result, next, nil
	}
	if p.options.Envoys == nil && !wait(ctx, p.options.StepGap) { // an Envoy may be at the last change yet
		return result, now, nil
	}
	result, err = d.Publish(ctx, plan)
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		// It is rolled back, and the trim delay starts again.
		p.log.Error("Envoy refused a trim, it is put off", "error", refused)
		p.report(refused.Refusal.Findings)
		_, err = p.startTrimDelays(ctx, d, now)
		return result, now.Add(p.options.TrimDelay), err
	}
	return result, next, err
}

// startTrimDelays returns the record, or none while a change is under way: this may need all
// that is retired. It sets the time of what the last change retired to now, and also a time
// in the future: somebody has set the clock back.
func (p *Pipeline) startTrimDelays(ctx context.Context, d *publish.Dir, now time.Time) (publish.Manifest, error) {
	m, err := p.out.Manifest()
	if err != nil || len(m.Retired) == 0 {
		return m, err
	}
	if unfinished, err := publish.ReadIntent(p.options.Out); err != nil || unfinished != nil {
		return publish.Manifest{}, err
	}
	changed := false
	for i, g := range m.Retired {
		if g.Since.IsZero() || g.Since.After(now) {
			m.Retired[i].Since, changed = now, true
		}
	}
	if changed {
		_, err = d.Publish(ctx, publish.Plan{Manifest: m})
	}
	return m, err
}

// due returns what Trim may remove now, and when to check the rest.
func (p *Pipeline) due(ctx context.Context, m publish.Manifest, now time.Time) (due []publish.Retired, next time.Time, err error) {
	edited, err := m.DriftedAt(p.options.Out, p.options.Format.Path(xds.Cluster, ""))
	if err != nil || edited {
		return nil, next, err // the next publish mends the file
	}
	drained, err := p.usableUntil(ctx)
	if err != nil {
		return nil, next, err
	}
	for _, g := range m.Retired {
		at, known := drained(g, now)
		switch {
		case known && !at.After(now):
			due = append(due, g)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return due, next, nil
}

// usableUntil returns a function that says when Trim may remove something; where that is not
// known yet, when to ask again.
func (p *Pipeline) usableUntil(ctx context.Context) (func(g publish.Retired, now time.Time) (at time.Time, known bool), error) {
	after := func(g publish.Retired, _ time.Time) (time.Time, bool) { return g.Since.Add(p.options.TrimDelay), true }
	if p.options.Envoys == nil {
		return after, nil
	}
	subs, err := p.currentSubscriptions()
	if err != nil {
		return nil, err
	}
	probes := p.options.Envoys.Probe(ctx, subs)
	routed := min(routeTimeout, p.options.TrimDelay)
	return func(g publish.Retired, now time.Time) (time.Time, bool) {
		latest := now
		for _, l := range probes {
			latest = later(latest, g.Since.Add(routed))
			switch at := g.Since.Add(l.DrainTime + drainSlack); {
			case l.Err != nil: // it may still run and drain
				at, _ = after(g, now)
				latest = later(latest, at)
			case !l.Runs() || l.WarmingListeners > 0: // it may need all of it
				return now.Add(trimPoll), false
			case l.Epoch > 0: // the process before it may drain, and has no admin interface
				latest = later(latest, at)
			case l.DrainingListeners+l.DrainingFilterChains == 0:
			case at.After(now): // draining may end before
				return now.Add(trimPoll), false
			}
		}
		return latest, true
	}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// trimPlan plans the removal of what is due. The other clusters stay as the published file
// has them, and no file is removed that they, or listeners, name.
func (p *Pipeline) trimPlan(due []publish.Retired) (publish.Plan, error) {
	st, err := p.readState()
	if err != nil {
		return publish.Plan{}, err
	}
	goes := make(map[publish.Retired]bool, len(due))
	for _, g := range due {
		goes[publish.Retired{Cluster: g.Cluster, File: g.File}] = true
	}
	stay := slices.DeleteFunc(slices.Clone(st.clusters), func(r *xds.Resource) bool { return goes[publish.Retired{Cluster: r.Name}] })
	for _, file := range p.ours().named(slices.Concat(stay, st.listeners)) {
		delete(goes, publish.Retired{File: file})
	}
	clusters, files := publish.Step{Name: "trim clusters"}, publish.Step{Name: "trim files"}
	m := st.manifest
	m.Retired = nil
	for _, g := range st.manifest.Retired {
		switch {
		case !goes[publish.Retired{Cluster: g.Cluster, File: g.File}]:
			m.Retired = append(m.Retired, g)
		case g.File != "":
			files.Remove = append(files.Remove, g.File)
		}
	}
	if len(stay) < len(st.clusters) {
		file, err := new(render.Renderer).Clusters(p.options.Format, stay)
		if err != nil {
			return publish.Plan{}, err
		}
		p.remember([]render.File{file})
		clusters.Write = append(clusters.Write, publishFile(file))
	}
	of := publish.Refusal{Snapshot: m.Snapshot}
	return publish.Plan{Steps: []publish.Step{clusters, files}, Gap: p.options.StepGap, Manifest: m, Confirm: p.confirmer(p.confirmation(nil, of), of)}, nil
}

// wait reports whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// report logs findings of a trim.
func (p *Pipeline) report(list diag.List) {
	for _, d := range list {
		p.log.Error(d.Message, "code", d.Code, "place", d.Position.String())
	}
}
