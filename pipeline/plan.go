package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"xdspub/diag"
	"xdspub/diff"
	"xdspub/internal/fspath"
	"xdspub/internal/names"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// Plan is the steps from what is published to a Snapshot. It is a value: it can be shown
// without being carried out.
type Plan struct {
	// Change publishes the new resources. What they replace stays until its trim.
	Change publish.Plan
	// ID is the id of the Snapshot.
	ID string
	// Held is the refusal for which the Snapshot is held; nil where it is not. A held
	// Snapshot is published again only on request.
	Held *publish.Refusal

	snapshot *xds.Snapshot
	// delivery is the hash of the resources as they are delivered.
	delivery string
	// changed means that another Snapshot is published now.
	changed bool
}

// Plan renders an accepted Snapshot, and plans the steps from what is published to it. It
// changes nothing on disk. Findings of severity Error mean that there is no plan; a
// *UsageError means that the output directory does not allow the Options. An error may also
// mean that ctx has ended.
func (p *Pipeline) Plan(ctx context.Context, s *xds.Snapshot, now time.Time) (*Plan, diag.List, error) {
	st, err := p.readState()
	if err != nil {
		return nil, nil, err
	}
	if r, ok := p.renderEdit(s, st, now); ok {
		plan, err := p.planOf(s, st, r, now)
		return plan, nil, err
	}
	r, list, err := p.renderWhole(ctx, s, st, now)
	if err != nil || list.HasErrors() {
		return nil, list, err
	}
	plan, err := p.planOf(s, st, r, now)
	if err != nil {
		return nil, nil, err
	}
	p.planned = planned{
		snapshot: s, target: r.target, silent: len(list) == 0,
		clusters: resourcesIn(r.files, xds.Cluster), listeners: resourcesIn(r.files, xds.Listener),
	}
	return plan, list, nil
}

// rendered is a Snapshot as it is to be published.
type rendered struct {
	target render.Target
	files  []render.File // all, or those that differ from the published ones
	// intermediate are LDS files to publish before that of the Snapshot.
	intermediate []render.File
	id           string
	watches      []string
	retired      []publish.Retired
	rollback     *publish.Rollback
}

// renderWhole renders a Snapshot of which nothing is known. Findings of severity Error mean
// that there is nothing to publish.
func (p *Pipeline) renderWhole(ctx context.Context, s *xds.Snapshot, st *state, now time.Time) (*rendered, diag.List, error) {
	p.forgetGone(st.files)
	layers, _, err := p.layers(st.files)
	if err != nil {
		return nil, nil, err
	}
	transitions, err := diff.Transitions(published{p, st}, s, diff.Options{Disable: p.options.Disable})
	if err != nil || transitions.HasErrors() {
		return nil, transitions, err
	}
	r := &rendered{target: render.Target{EnvoyPath: p.envoyPath(), Format: p.options.Format, EmptyLayers: layers}}
	if r.target.Retired = p.retiredClusters(ctx, st, s); ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	out, list := p.renderWithin(ctx, s, &r.target, st, now)
	list = append(transitions, list...)
	if ctx.Err() != nil || list.HasErrors() {
		return nil, list, ctx.Err()
	}
	r.files, r.id, r.watches, r.retired = out.Files, out.ID, out.Watches, st.retired(r.target.Retired, out)
	intermediate, findings := p.intermediateLDS(ctx, s, st, r.target, diff.Waits(st.listeners, s.Of(xds.Listener)))
	if r.intermediate = intermediate; findings.HasErrors() {
		return nil, append(list, findings...), nil
	}
	r.rollback, err = p.rollback(s, st, r.target.Retired)
	return r, list, cmp.Or(err, ctx.Err())
}

// planOf plans the steps from what is published to a rendered Snapshot.
func (p *Pipeline) planOf(s *xds.Snapshot, st *state, r *rendered, now time.Time) (*Plan, error) {
	p.remember(r.files)
	refused, err := publish.ReadRefused(p.options.Out)
	if err != nil {
		return nil, err
	}
	plan := &Plan{ID: s.ID(), Held: refused.Holds(s.ID(), r.id), snapshot: s, delivery: r.id, changed: s.ID() != st.manifest.Snapshot}
	plan.Change = publish.Plan{
		Steps: p.steps(s, st, r),
		Gap:   p.options.StepGap, Rollback: r.rollback, Manifest: p.manifest(s, st, r, now),
	}
	if _, out := slices.BinarySearch(st.files, p.options.Format.Path(xds.Cluster, "")); !out {
		plan.Change.Gap = 0 // no Envoy can have started from here: its bootstrap's files are missing
	}
	return plan, nil
}

// manifest returns the record of a publish.
func (p *Pipeline) manifest(s *xds.Snapshot, st *state, r *rendered, now time.Time) publish.Manifest {
	m := publish.Manifest{
		Format: p.options.Format.Name, EnvoyPath: p.envoyPath(), EDSMode: string(EndpointsFile),
		Snapshot: s.ID(), Published: now, Resources: countsOf(s), Revision: st.manifest.Revision,
	}
	if m.Snapshot == st.manifest.Snapshot {
		m.Published = st.manifest.Published // a repair does not change the time
	}
	if r.target.InlineEndpoints {
		m.EDSMode = string(EndpointsInline)
	}
	if r.target.InlineRoutes {
		m.InlineRoutesBudget = max(st.manifest.InlineRoutesBudget, p.options.InotifyBudget)
	}
	retiredAt := st.manifest.RetiredAt()
	for _, g := range r.retired {
		g.Since = retiredAt[publish.Retired{Cluster: g.Cluster, File: g.File}]
		m.Retired = append(m.Retired, g)
	}
	m.DrainingWatches = st.drainingWatches(p.derive(xds.Listener, st.listeners).watches, r.watches, now.Add(-p.options.TrimDelay), now)
	return m
}

// resourcesIn returns the resources of the file of a type.
func resourcesIn(files []render.File, t *xds.Type) []*xds.Resource {
	i := slices.IndexFunc(files, func(f render.File) bool { return f.Type == t })
	if i < 0 {
		return nil
	}
	return files[i].Resources
}

// remember keeps the resources of the CDS and LDS files, which take long to decode.
func (p *Pipeline) remember(files []render.File) {
	for _, f := range files {
		if f.Type == xds.Cluster || f.Type == xds.Listener {
			p.rendered[f.Path] = &readOut{data: f.Data, resources: f.Resources}
		}
	}
}

// countsOf returns how many resources of each type there are.
func countsOf(s *xds.Snapshot) map[string]int {
	n := make(map[string]int)
	for _, t := range xds.Types {
		if of := len(s.Of(t)); of > 0 {
			n[t.API] = of
		}
	}
	return n
}

// renderWithin renders s so that the path subscriptions that run, drain and are new fit into
// the inotify budget. It sets in t what it inlines for that.
func (p *Pipeline) renderWithin(ctx context.Context, s *xds.Snapshot, t *render.Target, st *state, now time.Time) (*render.Output, diag.List) {
	running := st.draining(now.Add(-p.options.TrimDelay))
	for _, d := range []*derived{p.derive(xds.Cluster, st.clusters), p.derive(xds.Listener, st.listeners)} {
		running = slices.AppendSeq(running, maps.Keys(d.watches))
	}
	var needed []int // by inline mode
	for _, way := range p.inlineModes(st) {
		t.InlineEndpoints, t.InlineRoutes = way.endpoints, way.routes
		out, list := p.renderer.Render(ctx, s, *t)
		if out == nil {
			return nil, list
		}
		needed = append(needed, len(out.Watches)+len(without(running, out.Watches)))
		if needed[len(needed)-1] <= p.options.InotifyBudget {
			return out, append(list, p.warnInlined(way, st, needed[0])...)
		}
	}
	inline := ""
	if least := needed[len(needed)-1]; least < needed[0] {
		inline = fmt.Sprintf(", %d with all inline that may be", least)
	}
	help := "raise the sysctl fs.inotify.max_user_instances and --inotify-budget"
	if p.options.Endpoints == EndpointsFile {
		help += ", or use --eds=inline"
	}
	return nil, diag.List{{
		Code: codeInotifyBudget.Name, Position: diag.Position{File: p.options.Source},
		Message: fmt.Sprintf("Envoy would need %d inotify instances for its path subscriptions%s, the budget is %d", needed[0], inline, p.options.InotifyBudget),
		Help:    help,
	}}
}

// inlineMode is the set of resources that are inlined.
type inlineMode struct{ endpoints, routes bool }

// currentInlineMode returns what is inlined now and stays so: endpoints until --eds
// changes, routes until the budget is raised.
func (p *Pipeline) currentInlineMode(st *state) inlineMode {
	return inlineMode{
		endpoints: p.options.Endpoints == EndpointsInline || p.options.Endpoints == EndpointsAuto && st.manifest.EDSMode == string(EndpointsInline),
		routes:    p.options.InotifyBudget <= st.manifest.InlineRoutesBudget,
	}
}

// inlineModes returns the modes that the Options allow, the one that costs the fewest
// connections first. It inlines endpoints before routes: each change of an inlined route
// drains the connections of a listener.
func (p *Pipeline) inlineModes(st *state) []inlineMode {
	is := p.currentInlineMode(st)
	var ways []inlineMode
	for _, w := range []inlineMode{{}, {endpoints: true}, {routes: true}, {endpoints: true, routes: true}} {
		switch {
		case is.endpoints && !w.endpoints, is.routes && !w.routes, p.options.Endpoints == EndpointsFile && w.endpoints:
		default:
			ways = append(ways, w)
		}
	}
	return ways
}

// warnInlined returns warnings of what is inlined from now on, because of the budget.
func (p *Pipeline) warnInlined(w inlineMode, st *state, needed int) diag.List {
	is := p.currentInlineMode(st)
	budget := fmt.Sprintf("Envoy would need %d inotify instances for its path subscriptions, the budget is %d", needed, p.options.InotifyBudget)
	const help = "to keep them in files, raise the sysctl fs.inotify.max_user_instances and --inotify-budget"
	var list diag.List
	if w.endpoints && !is.endpoints {
		list = append(list, diag.Diagnostic{
			Code: codeEndpointsInlined.Name, Severity: codeEndpointsInlined.Severity, Position: diag.Position{File: p.options.Source},
			Message: "endpoint assignments go into their clusters from now on: " + budget + "; an endpoint change then replaces its cluster and its connections",
			Help:    help + "; to take this as it is, use --eds=inline",
		})
	}
	if w.routes && !is.routes {
		list = append(list, diag.Diagnostic{
			Code: codeRoutesInlined.Name, Severity: codeRoutesInlined.Severity, Position: diag.Position{File: p.options.Source},
			Message: "route configurations go into their listeners from now on: " + budget + "; a route change then replaces the filter chains of its listeners and drains their connections",
			Help:    help + "; they go back into files when --inotify-budget is raised",
		})
	}
	return list
}

// retiredClusters returns the published clusters that the Snapshot has no longer, as they
// were bound. They are published once more, and so validated like any other: the file may
// have been edited by hand.
func (p *Pipeline) retiredClusters(ctx context.Context, st *state, s *xds.Snapshot) []*xds.Resource {
	going := xds.NewSnapshot(slices.DeleteFunc(slices.Clone(st.clusters), func(r *xds.Resource) bool { return s.Lookup(xds.Cluster, r.Name) != nil }))
	bad := make(map[string]bool)
	for _, d := range validate.Run(ctx, going, rules.All, validate.Options{Envoy: p.options.Envoy, Disable: p.options.Disable, Partial: true}) {
		if d.Severity == diag.Error {
			bad[d.Resource.Name] = true
			p.log.Warn("a published cluster was changed by hand and goes at once", "cluster", d.Resource.Name, "error", d.Message)
		}
	}
	for _, r := range going.Of(xds.Cluster) {
		if file := p.missingFile(r, st, s); file != "" && !bad[r.Name] {
			bad[r.Name] = true
			p.log.Warn("a file of a cluster that goes was removed by hand, an Envoy that starts would refuse it: the cluster goes at once", "cluster", r.Name, "file", file)
		}
	}
	return slices.DeleteFunc(slices.Clone(going.Of(xds.Cluster)), func(r *xds.Resource) bool { return bad[r.Name] })
}

// missingFile returns a file that a published cluster subscribes to and that is neither
// published nor in the Snapshot; "" where there is none.
func (p *Pipeline) missingFile(cluster *xds.Resource, st *state, s *xds.Snapshot) string {
	subs := p.subscribers([]*xds.Resource{cluster}, nil, nil)
	for _, key := range slices.Sorted(maps.Keys(subs)) {
		sub := subs[key]
		if _, out := slices.BinarySearch(st.files, sub.file); !out && sub.name != "" && s.Lookup(sub.t, sub.name) == nil {
			return sub.file
		}
	}
	return ""
}

// retired returns what is published and not in the Snapshot: clusters, and files that no new
// subscription names.
func (st *state) retired(clusters []*xds.Resource, out *render.Output) []publish.Retired {
	var going []publish.Retired
	for _, r := range clusters {
		going = append(going, publish.Retired{Cluster: r.Name})
	}
	wanted := make([]string, len(out.Files))
	for i, f := range out.Files {
		wanted[i] = f.Path
	}
	// A file on record is retired also where it was removed by hand.
	names := without(st.manifest.Files.Names(), st.files)
	for _, f := range without(slices.Concat(names, st.files), wanted) {
		// The bootstrap names a layer that can't be read, and nothing replaces it.
		if !isLayer(f) {
			going = append(going, publish.Retired{File: f})
		}
	}
	return going
}

// without returns those of list, each once, that are not in sorted.
func without(list, sorted []string) []string {
	var rest []string
	for _, x := range list {
		if _, found := slices.BinarySearch(sorted, x); !found {
			rest = append(rest, x)
		}
	}
	slices.Sort(rest)
	return slices.Compact(rest)
}

// draining returns the watches that began to drain after a time.
func (st *state) draining(after time.Time) (watches []string) {
	for _, d := range st.manifest.DrainingWatches {
		if d.Since.After(after) {
			watches = append(watches, d.Watch)
		}
	}
	return watches
}

// drainingWatches returns the path subscriptions that published listeners have and that are
// none of watches, which is sorted, and those that began to drain after a time.
func (st *state) drainingWatches(listening names.Counts, watches []string, after, now time.Time) []publish.DrainingWatch {
	var list []publish.DrainingWatch
	had := make(map[string]bool)
	add := func(watch string, since time.Time) {
		_, stays := slices.BinarySearch(watches, watch)
		if !stays && since.After(after) && !had[watch] {
			had[watch] = true
			list = append(list, publish.DrainingWatch{Watch: watch, Since: earlier(since, now)})
		}
	}
	for watch := range listening {
		add(watch, now)
	}
	for _, d := range st.manifest.DrainingWatches {
		add(d.Watch, d.Since)
	}
	slices.SortFunc(list, func(a, b publish.DrainingWatch) int { return cmp.Compare(a.Watch, b.Watch) })
	return list
}

// steps sorts files into the order that Envoy needs: a resource is published before the ones
// that name it, while what named it before stays.
func (p *Pipeline) steps(s *xds.Snapshot, st *state, r *rendered) []publish.Step {
	const (
		born = iota
		early
		clusters
		endpoints
		extensions
		unasked
		listeners
		routes
	)
	list := []publish.Step{
		{Name: "new names"}, {Name: "secrets, extensions, runtime"}, {Name: "clusters"}, {Name: "endpoints"}, {Name: "extensions"},
		{Name: "routes that no listener asks for yet"}, {Name: "listeners"}, {Name: "routes"},
	}
	byClusters, byListeners := p.derive(xds.Cluster, st.clusters).named, p.derive(xds.Listener, st.listeners).named
	upstream := sync.OnceValue(func() map[string]bool { return upstreamExtensions(s) })
	for _, f := range r.files {
		_, out := slices.BinarySearch(st.files, f.Path)
		at := born
		switch t := f.Type; {
		case t == xds.Cluster:
			at = clusters
		case t == xds.Listener:
			at = listeners
		// Filters call clusters, and a filter of a draining listener may read a new file
		// at once. But clusters with filters of their own need the files of these.
		case t == xds.ExtensionConfig && byClusters[f.Path] == 0 && !upstream()[f.Name]:
			at = extensions
		case !out:
		// No Envoy has taken the file that is there, and no listener must read it. But a
		// draining one may, so the clusters that it leads to come first.
		case isRoutes(t) && byListeners[f.Path] == 0:
			at = unasked
		case isRoutes(t):
			at = routes
		case t == xds.Runtime: // which the bootstrap names
			at = early
		case byClusters[f.Path]+byListeners[f.Path] == 0:
		case t == xds.Endpoints:
			at = endpoints
		default:
			at = early
		}
		list[at].Write = append(list[at].Write, publishFile(f))
	}
	var leave []publish.Step
	for _, f := range r.intermediate {
		leave = append(leave, publish.Step{Name: "listeners that leave an address", Write: []publish.File{publishFile(f)}})
	}
	return slices.Insert(list, listeners, leave...)
}

// isRoutes reports whether resources of a type lead to clusters, and draining listeners
// follow them.
func isRoutes(t *xds.Type) bool { return t == xds.RouteConfiguration || t == xds.ScopedRoutes }

// upstreamExtensions returns the names of the extensions that clusters of s subscribe to.
func upstreamExtensions(s *xds.Snapshot) map[string]bool {
	names := make(map[string]bool)
	for _, r := range s.Of(xds.Cluster) {
		for _, sub := range r.Facts().Subscriptions {
			if sub.Target == xds.ExtensionConfig && s.Serves(sub) {
				names[sub.Name] = true
			}
		}
	}
	return names
}

func publishFile(f render.File) publish.File {
	return publish.File{Path: f.Path, Data: f.Data, Version: f.Version, Secret: f.Secret}
}

func (p *Pipeline) envoyPath() string {
	if p.options.EnvoyPath != "" {
		return filepath.Clean(p.options.EnvoyPath)
	}
	return DefaultEnvoyPath(p.options.Out)
}

// DefaultEnvoyPath returns the output directory as an Envoy of the same file system sees it:
// absolute, and without links, which may change.
func DefaultEnvoyPath(out string) string { return fspath.Resolve(out) }
