package pipeline

import (
	"context"
	"errors"
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

// confirmation asks the Envoys of an output directory whether they take the steps
// of one change in. It is a publish.Confirmer.
type confirmation struct {
	p        *Pipeline
	snapshot *xds.Snapshot // that is published; nil where only old bytes move
	// refusal says what a refusal is of.
	refusal publish.Refusal

	versions  map[string]string // of the files that are out, as the steps go
	clusters  []*xds.Resource   // that are out
	listeners []*xds.Resource
	subs      map[string]*subscriber
	acked     map[string]bool // the files that all Envoys have taken

	asked    bool                 // who the Envoys are
	expected []envoy.Subscription // of the step under way
	wait     *envoy.AckWait       // nil where nobody is expected to follow
	outcomes []envoy.Outcome
}

// confirmation is nil where no Envoy is known. It costs nothing before it is asked:
// most passes move no file.
func (p *Pipeline) confirmation(s *xds.Snapshot, of publish.Refusal) *confirmation {
	if p.options.Envoys == nil {
		return nil
	}
	return &confirmation{p: p, snapshot: s, refusal: of, versions: make(map[string]string), acked: make(map[string]bool)}
}

// read takes in what is out, and who is subscribed to it.
func (c *confirmation) read() error {
	st, err := c.p.readState()
	if err != nil {
		return err
	}
	c.clusters, c.listeners = st.clusters, st.listeners
	for _, file := range st.files {
		c.versions[file] = st.manifest.Files[file].Version
	}
	// No publish writes again what goes, or mends it: what lies there is what Envoy has
	// to run, be it edited, or not on record.
	for _, g := range st.manifest.Retired {
		if _, there := c.versions[g.File]; there {
			c.versions[g.File] = c.p.versionInfo(g.File)
		}
	}
	return c.subscribe()
}

// confirmer is c as publish takes it: a nil pointer in an interface is not nil.
func (c *confirmation) confirmer() publish.Confirmer {
	if c == nil {
		return nil
	}
	return c
}

// subscribe notes who is subscribed to what is out.
func (c *confirmation) subscribe() (err error) {
	layers, _, err := c.p.layers(slices.Sorted(maps.Keys(c.versions)))
	c.subs = c.p.subscribers(c.clusters, c.listeners, layers)
	return err
}

// currentSubscriptions are the subscriptions of Envoys to what is out.
func (c *confirmation) currentSubscriptions() []envoy.Subscription {
	var list []envoy.Subscription
	for _, key := range slices.Sorted(maps.Keys(c.subs)) {
		if sub := c.subs[key]; c.versions[sub.file] != "" {
			list = append(list, sub.expect(c.versions[sub.file], true))
		}
	}
	return list
}

// currentSubscriptions are the subscriptions of Envoys, of which some are known, to what is out.
func (p *Pipeline) currentSubscriptions() ([]envoy.Subscription, error) {
	c := p.confirmation(nil, publish.Refusal{})
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.currentSubscriptions(), nil
}

// preflight fails where an Envoy could never confirm: nobody may be subscribed to the files
// of the first steps, and they would be out by the time that one is asked.
func (c *confirmation) preflight(ctx context.Context) error {
	var wrong []error
	for _, look := range c.p.options.Envoys.Probe(ctx, c.currentSubscriptions()) {
		switch {
		case look.Err == nil:
			wrong = append(wrong, look.ExcludedStats())
		case !look.Unreachable():
			wrong = append(wrong, look.Err)
		}
	}
	c.asked = true
	return errors.Join(wrong...)
}

// Before takes the baseline of all Envoys that follow the step.
func (c *confirmation) Before(ctx context.Context, s publish.Step) (err error) {
	if c.subs == nil {
		if err := c.read(); err != nil {
			return err
		}
	}
	if !c.asked {
		if err := c.preflight(ctx); err != nil {
			return err
		}
	}
	if err := c.expect(s); err != nil {
		return err
	}
	c.wait = nil
	if len(c.expected) > 0 {
		c.wait, err = c.p.options.Envoys.Begin(ctx, c.expected)
	}
	return err
}

// After waits for their acknowledgements.
func (c *confirmation) After(ctx context.Context, s publish.Step) (answered bool, err error) {
	if c.wait == nil {
		return true, nil // nobody is subscribed, so nobody has to follow
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

// writes tells whether a step has the file of all resources of a type.
func (c *confirmation) writes(s publish.Step, t *xds.Type) bool {
	return slices.ContainsFunc(s.Write, func(f publish.File) bool { return f.Path == c.p.options.Format.Path(t, "") })
}

// expect works out which subscriptions the step changes: to the files that it
// writes, and those that Envoys come to have with it. What a step brings is read
// from its bytes: on the way back there is nothing else.
func (c *confirmation) expect(s publish.Step) error {
	before := c.subs
	written := make(map[string]bool, len(s.Write))
	for _, f := range s.Write {
		c.versions[f.Path] = f.Version
		written[f.Path] = true
		for t, resources := range map[*xds.Type]*[]*xds.Resource{xds.Cluster: &c.clusters, xds.Listener: &c.listeners} {
			if f.Path == c.p.options.Format.Path(t, "") {
				*resources = load.Parse(load.Input{Name: f.Path, Format: c.p.options.Format.Name, Data: f.Data}).Resources()
			}
		}
	}
	for _, name := range s.Remove {
		delete(c.versions, name)
	}
	if c.writes(s, xds.Cluster) || c.writes(s, xds.Listener) {
		if err := c.subscribe(); err != nil {
			return err
		}
	}
	c.expected = nil
	for _, key := range slices.Sorted(maps.Keys(c.subs)) {
		sub := c.subs[key]
		version, out := c.versions[sub.file]
		if out && version != "" && (written[sub.file] || before[key] == nil) {
			c.expected = append(c.expected, sub.expect(version, !written[sub.file]))
		}
	}
	return nil
}

// expect is what Envoys are asked for.
func (s *subscriber) expect(version string, standing bool) envoy.Subscription {
	return envoy.Subscription{File: s.file, API: s.t.API, Name: s.name, Version: version, StatPrefixes: s.statPrefixes, Entrypoints: s.entrypoints, Unmoved: standing}
}

// note keeps which secrets and endpoints every Envoy that counts has taken: they
// stay when the change goes back.
func (c *confirmation) note(o envoy.Outcome) {
	if o.Answering == 0 {
		return
	}
	open := make(map[string]bool) // the files that one of them has not taken
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

// logOutcome logs what became of a step.
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

// refusals are what Envoys said, at the place of the resource where it is known.
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

// lookup is the resource in the source tree, where there is one.
func lookup(s *xds.Snapshot, t *xds.Type, name string) *xds.Resource {
	if s == nil {
		return nil
	}
	return s.Lookup(t, name)
}
