package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/load"
	"xdspub/publish"
	"xdspub/xds"
)

// confirmation asks the Envoys of an output directory whether they take the steps of one
// change. It is a publish.Confirmer.
type confirmation struct {
	p        *Pipeline
	snapshot *xds.Snapshot // nil where only old bytes move
	// refusal has the ids of a refusal.
	refusal publish.Refusal

	st        *state            // before the first step; nil before that
	retired   map[string]bool   // files
	versions  map[string]string // of published files: of those that moved, and those that were asked for
	clusters  []*xds.Resource   // published
	listeners []*xds.Resource
	subs      *subscribers
	acked     map[string]bool // the files that all Envoys acknowledged

	asked    bool                 // the Envoys were asked whether they could confirm
	expected []envoy.Subscription // of the step under way
	wait     *envoy.AckWait       // nil where no Envoy is expected to follow
	outcomes []envoy.Outcome
}

// confirmation returns nil where no Envoy is known. It costs nothing before the first step:
// most reconciles move no file.
func (p *Pipeline) confirmation(s *xds.Snapshot, of publish.Refusal) *confirmation {
	if p.options.Envoys == nil {
		return nil
	}
	return &confirmation{p: p, snapshot: s, refusal: of, versions: make(map[string]string), acked: make(map[string]bool)}
}

// read reads the published files, and finds the subscriptions to them.
func (c *confirmation) read() (err error) {
	if c.st, err = c.p.readState(); err != nil {
		return err
	}
	c.clusters, c.listeners, c.retired = c.st.clusters, c.st.listeners, make(map[string]bool)
	for _, g := range c.st.manifest.Retired {
		c.retired[g.File] = true
	}
	return c.subscribe()
}

// confirmer returns what confirms the steps of a change: c, or without Envoys what Options
// say, which may be nothing.
func (p *Pipeline) confirmer(c *confirmation, of publish.Refusal) publish.Confirmer {
	switch {
	case c != nil:
		return c
	case p.options.Confirm != nil:
		return p.options.Confirm(of)
	}
	return nil
}

// subscribe finds the subscriptions to the published files.
func (c *confirmation) subscribe() error {
	layers, _, err := c.p.layers(c.files())
	if err == nil {
		c.subs = c.p.subscribersOf(c.clusters, c.listeners, layers)
	}
	return err
}

// files returns the published files, sorted.
func (c *confirmation) files() []string {
	files := slices.Clone(c.st.files)
	for file := range c.versions {
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(file string) bool { return c.version(file) == "" })
}

// version returns the version of a published file; "" where it is not published, or has none.
func (c *confirmation) version(file string) string {
	if v, known := c.versions[file]; known {
		return v
	}
	if _, there := slices.BinarySearch(c.st.files, file); !there {
		return ""
	}
	was, _ := c.st.manifest.Files.Get(file)
	version := was.Version
	// No publish repairs a retired file: Envoy has to run what it holds, be it edited or
	// not on record.
	if c.retired[file] {
		version = c.p.versionInfo(file)
		c.versions[file] = version
	}
	return version
}

// running returns a function that returns the subscriptions of Envoys to the published files as
// they are now, before s moves some.
func (c *confirmation) running(s publish.Step) func() []envoy.Subscription {
	subs, before := c.subs, make(map[string]string)
	for _, f := range s.Write {
		before[f.Path] = c.version(f.Path)
	}
	for _, name := range s.Remove {
		before[name] = c.version(name)
	}
	return func() []envoy.Subscription {
		var list []envoy.Subscription
		for _, sub := range subs.all {
			version, moves := before[sub.file]
			if !moves {
				version = c.version(sub.file)
			}
			if version != "" {
				list = append(list, sub.expect(version, true))
			}
		}
		return list
	}
}

// currentSubscriptions returns the subscriptions of Envoys to the published files.
func (p *Pipeline) currentSubscriptions() ([]envoy.Subscription, error) {
	c := p.confirmation(nil, publish.Refusal{})
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.running(publish.Step{})(), nil
}

// Before observes all Envoys that are subscribed to files of the step. Before the first step it
// fails where an Envoy could never confirm. Without that it would show only at the first step
// that an Envoy is subscribed to, when other files are already published.
func (c *confirmation) Before(ctx context.Context, s publish.Step) (err error) {
	if c.st == nil {
		if err := c.read(); err != nil {
			return err
		}
	}
	var running func() []envoy.Subscription
	if !c.asked {
		running = c.running(s)
	}
	if err := c.expect(s); err != nil {
		return err
	}
	c.wait = nil
	if len(c.expected) == 0 && c.asked {
		return nil
	}
	wait, err := c.p.options.Envoys.Begin(ctx, c.expected, running)
	if err != nil {
		return err
	}
	c.asked = true
	if len(c.expected) > 0 {
		c.wait = wait
	}
	return nil
}

// After waits for their ACKs.
func (c *confirmation) After(ctx context.Context, s publish.Step) (answered bool, err error) {
	if c.wait == nil {
		return true, nil // no Envoy is subscribed
	}
	outcome := c.wait.Await(ctx, envoy.AwaitOptions{Warm: c.writes(s, xds.Cluster)})
	if outcome.Err != nil {
		return false, outcome.Err
	}
	c.outcomes = append(c.outcomes, outcome)
	c.note(outcome)
	c.p.logOutcome(s.Name, outcome)
	if outcome.Verdict == envoy.RefusedByQuorum {
		refusal := c.refusal
		refusal.Time, refusal.Step, refusal.Findings = time.Now().UTC().Round(0), s.Name, c.p.refusals(c.snapshot, outcome)
		return true, &publish.RefusedError{
			Refusal: refusal,
			Keep:    slices.Sorted(maps.Keys(c.acked)),
		}
	}
	return outcome.Answering > 0, nil
}

// writes reports whether a step writes the file of all resources of a type.
func (c *confirmation) writes(s publish.Step, t *xds.Type) bool {
	return slices.ContainsFunc(s.Write, func(f publish.File) bool { return f.Path == c.p.options.Format.Path(t, "") })
}

// expect finds the subscriptions that the step changes: those to the files that it writes,
// and new ones. It reads the resources from the bytes of the step: a rollback has nothing
// else.
func (c *confirmation) expect(s publish.Step) error {
	before := c.subs
	written := make(map[string]bool, len(s.Write))
	for _, f := range s.Write {
		c.versions[f.Path] = f.Version
		written[f.Path] = true
		for t, resources := range map[*xds.Type]*[]*xds.Resource{xds.Cluster: &c.clusters, xds.Listener: &c.listeners} {
			if f.Path == c.p.options.Format.Path(t, "") {
				*resources = c.p.resourcesOf(f)
			}
		}
	}
	for _, name := range s.Remove {
		c.versions[name] = ""
	}
	changed := c.subs.to(written)
	if c.writes(s, xds.Cluster) || c.writes(s, xds.Listener) {
		if err := c.subscribe(); err != nil {
			return err
		}
		changed = c.subs.all
	}
	c.expected = nil
	for _, sub := range changed {
		version := c.version(sub.file)
		if version != "" && (written[sub.file] || before.byKey[sub.key()] == nil) {
			c.expected = append(c.expected, sub.expect(version, !written[sub.file]))
		}
	}
	return nil
}

// resourcesOf returns the resources in a file of clusters or listeners. Mostly they were
// rendered into it.
func (p *Pipeline) resourcesOf(f publish.File) []*xds.Resource {
	if was, ok := p.rendered[f.Path]; ok && bytes.Equal(was.data, f.Data) {
		return was.resources
	}
	return load.Parse(load.Input{Name: f.Path, Format: p.options.Format.Name, Data: f.Data, Envoy: p.options.Envoy}).Resources()
}

// expect returns the subscription as Envoys are asked for it.
func (s *subscriber) expect(version string, unmoved bool) envoy.Subscription {
	return envoy.Subscription{File: s.file, API: s.t.API, Name: s.name, Version: version, StatPrefixes: s.statPrefixes, Entrypoints: s.entrypoints, Unmoved: unmoved}
}

// note stores which secrets and endpoints every Envoy that counts has acknowledged: a
// rollback leaves them.
func (c *confirmation) note(o envoy.Outcome) {
	if o.Answering == 0 {
		return
	}
	open := make(map[string]bool) // the files that an Envoy has not acknowledged
	for _, e := range o.Envoys {
		for _, s := range e.States {
			open[s.File] = open[s.File] || s.State != envoy.Acked
		}
	}
	for _, sub := range c.expected {
		if !sub.Unmoved && (sub.API == xds.Secret.API || sub.API == xds.Endpoints.API) && !open[sub.File] {
			c.acked[sub.File] = true
		}
	}
}

// logOutcome logs the answers of the Envoys to a step.
func (p *Pipeline) logOutcome(step string, o envoy.Outcome) {
	level := slog.LevelInfo
	if o.Verdict != envoy.Confirmed {
		level = slog.LevelWarn
	}
	p.log.Log(context.Background(), level, "Envoy "+o.Verdict.String(), "step", step, "answering", o.Answering, "envoys", len(o.Envoys))
	for _, e := range o.Envoys {
		for _, s := range e.States {
			if s.State != envoy.Acked {
				p.log.Warn("not taken", "envoy", e.URL, "file", s.File, "state", s.State, "want", s.Version, "runs", s.Runs)
			}
		}
		if len(e.NotWarm) > 0 {
			p.log.Warn("clusters are not warm yet, requests to them fail until they are", "envoy", e.URL, "clusters", e.NotWarm)
		}
	}
}

// refusals returns the reasons of the Envoys as findings, at the position of the resource where
// it is known.
func (p *Pipeline) refusals(s *xds.Snapshot, o envoy.Outcome) diag.List {
	var list diag.List
	for _, e := range o.Envoys {
		for _, r := range e.Refusals {
			list = append(list, p.refusal(s, e.URL, r))
		}
	}
	return list.Sort()
}

func (p *Pipeline) refusal(s *xds.Snapshot, url string, r envoy.Refusal) diag.Diagnostic {
	d := diag.Diagnostic{Position: diag.Position{File: p.options.Source}}
	if i := slices.IndexFunc(xds.Types, func(t *xds.Type) bool { return t.API == r.API }); i >= 0 && r.Resource != "" {
		d.Resource = diag.Resource{Type: xds.Types[i].URL(), Name: r.Resource}
		if res := lookup(s, xds.Types[i], r.Resource); res != nil {
			d = res.Diagnostic(codeRefusedByEnvoy.Name, "", "")
		}
	}
	d.Code, d.Severity = codeRefusedByEnvoy.Name, codeRefusedByEnvoy.Severity
	what := r.API
	if r.Resource != "" {
		what = fmt.Sprintf("%s %q", r.API, r.Resource)
	}
	d.Message = fmt.Sprintf("Envoy %s refused %s: %s", url, what, r.Message)
	if r.Message == "" {
		d.Message = fmt.Sprintf("Envoy %s refused %s and gave no reason", url, what)
		d.Help = "Envoy's log has the reason: --envoy-log FILE shows it here"
	}
	return d
}

// lookup returns the resource in the source tree, or nil.
func lookup(s *xds.Snapshot, t *xds.Type, name string) *xds.Resource {
	if s == nil {
		return nil
	}
	return s.Lookup(t, name)
}
