package pipeline

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// Plan is the way from what is out to a Snapshot. It is a value: it can be shown
// without being carried out.
type Plan struct {
	// Change brings the new resources out and leaves what they replace in place.
	Change publish.Plan
	// Trim takes away what nothing needs any more, once its time has come.
	Trim publish.Plan
	// NextTrim is when more can be trimmed; zero when nothing waits.
	NextTrim time.Time
	// ID is the Snapshot's.
	ID string
}

// Plan renders an accepted Snapshot and plans the steps to it from what is out.
// It changes nothing. Findings of severity Error mean that there is no plan; a
// *UsageError means that the output directory does not allow the Options.
func (p *Pipeline) Plan(s *xds.Snapshot, now time.Time) (*Plan, diag.List, error) {
	st, err := p.readState()
	if err != nil {
		return nil, nil, err
	}
	layers, err := RuntimeLayers(p.options.Out)
	if err != nil {
		return nil, nil, err
	}
	target := render.Target{EnvoyPath: p.envoyPath(), Going: st.goingClusters(s), EmptyLayers: layers}
	out, mode, list := p.renderWithin(s, target, st)
	if list.HasErrors() {
		return nil, list, nil
	}
	plan := &Plan{ID: out.ID}
	m := publish.Manifest{Format: p.options.Format, EnvoyPath: p.envoyPath(), EDSMode: string(mode), Snapshot: out.ID, Published: now}
	var due []publish.Going
	for _, g := range st.going(s, out) {
		g.Since = st.since(g.Cluster, g.File, now)
		m.Going = append(m.Going, g)
		at := g.Since.Add(p.options.TrimDelay)
		switch {
		case !at.After(now):
			due = append(due, g)
		case plan.NextTrim.IsZero() || at.Before(plan.NextTrim):
			plan.NextTrim = at
		}
	}
	plan.Change = publish.Plan{Steps: steps(out.Files, st), Gap: p.options.StepGap, Manifest: m}
	if st.fresh() {
		plan.Change.Gap = 0 // no Envoy can have started from here: its bootstrap's files are missing
	}
	if len(due) > 0 {
		plan.Trim, list = p.trim(s, target, due, m, list)
	}
	return plan, list, nil
}

// trim plans to take away what is due.
func (p *Pipeline) trim(s *xds.Snapshot, target render.Target, due []publish.Going, m publish.Manifest, list diag.List) (publish.Plan, diag.List) {
	isDue := func(g publish.Going) bool {
		return slices.ContainsFunc(due, func(d publish.Going) bool { return d.Cluster == g.Cluster && d.File == g.File })
	}
	m.Going = slices.DeleteFunc(slices.Clone(m.Going), isDue)
	target.InlineEndpoints = m.EDSMode == string(EndpointsInline)
	target.Going = slices.DeleteFunc(slices.Clone(target.Going), func(r *xds.Resource) bool { return isDue(publish.Going{Cluster: r.Name}) })
	out, more := p.renderer.Render(s, target)
	if more.HasErrors() {
		return publish.Plan{}, append(list, more...)
	}
	step := publish.Step{Name: "trim"}
	for _, f := range out.Files {
		if f.Type == xds.Cluster {
			step.Write = append(step.Write, publishFile(f))
		}
	}
	for _, g := range due {
		if g.File != "" {
			step.Remove = append(step.Remove, g.File)
		}
	}
	return publish.Plan{Steps: []publish.Step{step}, Manifest: m}, list
}

// renderWithin renders so that the path subscriptions of what runs, drains and
// comes fit into the inotify budget.
func (p *Pipeline) renderWithin(s *xds.Snapshot, t render.Target, st *state) (*render.Output, EndpointsMode, diag.List) {
	mode := p.options.Endpoints
	if mode == EndpointsAuto {
		mode = EndpointsFile
		if st.manifest.EDSMode == string(EndpointsInline) {
			mode = EndpointsInline
		}
	}
	running := append(render.Watches(st.clusters), render.Watches(st.listeners)...)
	for _, g := range st.manifest.Going {
		// The reader of an endpoints file is a cluster, and counted as that.
		if g.File != "" && !strings.HasPrefix(g.File, "eds/") {
			running = append(running, "draining "+g.File)
		}
	}
	var warnings diag.List
	for {
		t.InlineEndpoints = mode == EndpointsInline
		out, list := p.renderer.Render(s, t)
		if list.HasErrors() {
			return nil, mode, list
		}
		all := append(slices.Clone(running), out.Watches...)
		slices.Sort(all)
		n := len(slices.Compact(all))
		switch {
		case n <= p.options.InotifyBudget:
			return out, mode, append(list, warnings...)
		case p.options.Endpoints == EndpointsAuto && mode == EndpointsFile:
			mode = EndpointsInline
			warnings = append(warnings, diag.Diagnostic{
				Code: codeEndpointsInlined.Name, Severity: codeEndpointsInlined.Severity, Position: diag.Position{File: p.options.Source},
				Message: fmt.Sprintf("endpoint assignments go into their clusters from now on: Envoy would need %d inotify instances for its path subscriptions, the budget is %d; an endpoint change then replaces its cluster and its connections",
					n, p.options.InotifyBudget),
				Help: "to keep them in files, raise the sysctl fs.inotify.max_user_instances and --inotify-budget; to take this as it is, use --eds=inline",
			})
		default:
			help := "raise the sysctl fs.inotify.max_user_instances and --inotify-budget"
			if mode == EndpointsFile {
				help += ", or use --eds=inline"
			}
			list = append(list, diag.Diagnostic{
				Code: codeInotifyBudget.Name, Position: diag.Position{File: p.options.Source},
				Message: fmt.Sprintf("Envoy would need %d inotify instances for its path subscriptions, the budget is %d", n, p.options.InotifyBudget),
				Help:    help,
			})
			return nil, mode, list
		}
	}
}

// goingClusters are the published clusters that the Snapshot has no longer, as
// they were bound.
func (st *state) goingClusters(s *xds.Snapshot) []*xds.Resource {
	return slices.DeleteFunc(slices.Clone(st.clusters), func(r *xds.Resource) bool { return s.Lookup(xds.Cluster, r.Name) != nil })
}

// going is all that is out and not in the Snapshot: clusters, and files that no
// new subscription names.
func (st *state) going(s *xds.Snapshot, out *render.Output) []publish.Going {
	var going []publish.Going
	for _, r := range st.goingClusters(s) {
		going = append(going, publish.Going{Cluster: r.Name})
	}
	wanted := make(map[string]bool, len(out.Files))
	for _, f := range out.Files {
		wanted[f.Path] = true
	}
	for _, f := range st.files {
		// A layer that can't be read has nothing to stand in for it, and is named
		// by the bootstrap all the same.
		if !wanted[f] && !isLayer(f) {
			going = append(going, publish.Going{File: f})
		}
	}
	return going
}

// steps sorts files into the order in which Envoy can follow: what is named goes
// out before what names it, and what named it before is still there.
func steps(files []render.File, st *state) []publish.Step {
	born := publish.Step{Name: "new names"}
	by := map[*xds.Type]*publish.Step{}
	order := []publish.Step{}
	for _, group := range []struct {
		name  string
		types []*xds.Type
	}{
		{"secrets, extensions, runtime", []*xds.Type{xds.Secret, xds.ExtensionConfig, xds.Runtime}},
		{"clusters", []*xds.Type{xds.Cluster}},
		{"endpoints", []*xds.Type{xds.Endpoints}},
		{"listeners", []*xds.Type{xds.Listener}},
		{"routes", []*xds.Type{xds.RouteConfiguration, xds.ScopedRoutes}},
	} {
		step := &publish.Step{Name: group.name}
		for _, t := range group.types {
			by[t] = step
		}
		for _, f := range files {
			if by[f.Type] != step {
				continue
			}
			if t := f.Type; t != xds.Cluster && t != xds.Listener && !st.subscribed(f.Path) {
				born.Write = append(born.Write, publishFile(f))
			} else {
				step.Write = append(step.Write, publishFile(f))
			}
		}
		order = append(order, *step)
	}
	return append([]publish.Step{born}, order...)
}

// subscribed tells whether a running Envoy may be subscribed to a file: it is
// out, and is not one that only waits for its trim.
func (st *state) subscribed(path string) bool {
	_, out := slices.BinarySearch(st.files, path)
	return out && !slices.ContainsFunc(st.manifest.Going, func(g publish.Going) bool { return g.File == path })
}

func publishFile(f render.File) publish.File {
	return publish.File{Path: f.Path, Data: f.Data, Secret: f.Secret}
}

func (p *Pipeline) envoyPath() string {
	if p.options.EnvoyPath != "" {
		return filepath.Clean(p.options.EnvoyPath)
	}
	return DefaultEnvoyPath(p.options.Out)
}

// DefaultEnvoyPath is the output directory as an Envoy sees it that has the same
// files before it: absolute, and without links, which may come to lead elsewhere.
func DefaultEnvoyPath(out string) string { return resolved(out) }
