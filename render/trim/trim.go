// Package trim removes retired clusters and files once nothing can use them any more. It goes by
// the published files and the record alone, and knows neither a source tree nor a plan for one.
package trim

import (
	"context"
	"errors"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/confirm"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/xds"
)

// trimPoll is how often Trim asks Envoys whether draining has ended.
const trimPoll = 5 * time.Second

const (
	// routeTimeout is how long a request that was routed before a change may still need its cluster if nothing
	// drains. Envoy's router looks the cluster up by name after the filters before the router, and again for
	// each retry. routeTimeout is Envoy's default timeout of a route.
	routeTimeout = 15 * time.Second
	// drainSlack is how much longer than the drain time draining may take.
	drainSlack = 2 * time.Second
)

// Options of a Trimmer.
type Options struct {
	// Delay is how long a retired cluster stays, for connections on a draining listener.
	Delay time.Duration
	// StepGap is the wait before each step without a fleet of Envoys.
	StepGap time.Duration
	// Clock notices when somebody sets the clock; nil for a short run.
	Clock *Clock
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Trimmer trims one output directory. Not for concurrent use.
type Trimmer struct {
	options  Options
	out      *published.Reader
	envoys   *confirm.Envoys
	renderer *render.Renderer
}

// New returns a Trimmer for an output directory. The renderer is that of the published files.
func New(out *published.Reader, envoys *confirm.Envoys, renderer *render.Renderer, o Options) *Trimmer {
	return &Trimmer{options: o, out: out, envoys: envoys, renderer: renderer}
}

// Trim removes unusable resources: retired clusters, then files without a reference. Trim reads only the
// published files, so a later change does not delay a trim, whether the change is under way, refused or held.
// next is the time of the next Trim; zero if nothing waits.
func (t *Trimmer) Trim(ctx context.Context, d *publish.Dir, now time.Time) (result publish.Result, next time.Time, err error) {
	if err := t.KeepTime(d); err != nil {
		return result, next, err
	}
	m, err := t.startTrimDelays(ctx, d, now)
	if err != nil || len(m.Retired) == 0 {
		return result, next, err
	}
	due, next, err := t.due(ctx, m, now)
	if err != nil || len(due) == 0 {
		return result, next, err
	}
	plan, err := t.plan(due)
	if err != nil {
		return result, next, err
	}
	if kept := len(plan.Manifest.Retired) > len(m.Retired)-len(due); kept && (next.IsZero() || next.After(now.Add(t.options.Delay))) {
		next = now.Add(t.options.Delay)
	}
	if len(plan.Manifest.Retired) == len(m.Retired) {
		return result, next, nil
	}
	if !t.envoys.Asked() && !wait(ctx, t.options.StepGap) { // an Envoy may be at the last change yet
		return result, now, nil
	}
	result, err = d.Publish(ctx, plan)
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		// It is rolled back, and the trim delay starts again.
		t.options.Log.Write(event.TrimRefused{Error: refused})
		t.report(refused.Refusal.Findings)
		_, err = t.startTrimDelays(ctx, d, now)
		return result, now.Add(t.options.Delay), err
	}
	return result, next, err
}

// startTrimDelays returns the record. While a change is under way, the record is empty, because the change may
// need every retired resource. startTrimDelays sets the time of the last change's retired entries to now. A
// time in the future is set to now, too, because somebody has set the clock back.
func (t *Trimmer) startTrimDelays(ctx context.Context, d *publish.Dir, now time.Time) (publish.Manifest, error) {
	m, err := t.out.Manifest()
	if err != nil || len(m.Retired) == 0 {
		return m, err
	}
	if unfinished, err := publish.ReadIntent(t.out.Dir()); err != nil || unfinished != nil {
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
func (t *Trimmer) due(ctx context.Context, m publish.Manifest, now time.Time) (due []publish.Retired, next time.Time, err error) {
	drained, err := t.usableUntil(ctx)
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
	if len(due) == 0 { // the file of all clusters need not be read
		return nil, next, nil
	}
	edited, err := m.DriftedAt(t.out.Dir(), t.out.Format().Path(xds.Cluster, ""))
	if err != nil || edited {
		return nil, time.Time{}, err // the next publish mends the file
	}
	return due, next, nil
}

// usableUntil returns a function that says when Trim may remove something; where that is not
// known yet, when to ask again.
func (t *Trimmer) usableUntil(ctx context.Context) (func(g publish.Retired, now time.Time) (at time.Time, known bool), error) {
	after := func(g publish.Retired, _ time.Time) (time.Time, bool) { return g.Since.Add(t.options.Delay), true }
	if !t.envoys.Asked() {
		return after, nil
	}
	probes, err := t.envoys.Probe(ctx)
	if err != nil {
		return nil, err
	}
	routed := min(routeTimeout, t.options.Delay)
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
func (t *Trimmer) report(list diag.List) {
	for _, d := range list {
		t.options.Log.Write(event.FindingOf(d))
	}
}
