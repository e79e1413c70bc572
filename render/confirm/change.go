package confirm

import (
	"context"
	"maps"
	"slices"
	"time"

	"xdspub/envoy"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// Change asks the Envoys whether they take the steps of one change.
type Change struct {
	*Envoys
	snapshot *xds.Snapshot // nil where only old bytes move
	// refusal has the ids of a refusal.
	refusal publish.Refusal

	st        *published.State  // before the first step; nil before that
	retired   map[string]bool   // files
	versions  map[string]string // of published files that moved or were asked for
	clusters  []*xds.Resource   // published
	listeners []*xds.Resource
	subs      *published.Subscribers
	acked     map[string]bool // the files that all Envoys acknowledged

	asked    bool                 // the Envoys have told whether they can confirm
	expected []envoy.Subscription // of the step under way
	wait     *envoy.AckWait       // nil where no Envoy is expected to follow
	outcomes []envoy.Outcome

	// offered is the name of the last refused step.
	offered string
	offers  transition.Offers
}

// Change returns the confirmation of a change to a Snapshot, which is nil where only old bytes
// move. of has the ids that its refusals go on record with. It costs nothing before the first
// step: most reconciles move no file.
func (e *Envoys) Change(s *xds.Snapshot, of publish.Refusal) *Change {
	return &Change{Envoys: e, snapshot: s, refusal: of, versions: make(map[string]string), acked: make(map[string]bool)}
}

// Confirmer returns c if a fleet of Envoys is set, and otherwise the Confirmer of Options.Instead, or nil
// without Instead.
func (c *Change) Confirmer() publish.Confirmer {
	switch {
	case c.Asked():
		return c
	case c.options.Instead != nil:
		return c.options.Instead(c.refusal)
	}
	return nil
}

// Outcomes returns the Envoys' answers to the steps, in order. A step without subscribed Envoys has no
// outcome.
func (c *Change) Outcomes() []envoy.Outcome { return c.outcomes }

// Recovers prepares the confirmation of an unfinished rollback, if one exists. An unreadable published file is
// an error before any file moves.
func (c *Change) Recovers() error {
	if !c.Asked() {
		return nil
	}
	unfinished, err := publish.ReadIntent(c.out.Dir())
	if err != nil || unfinished == nil {
		return err
	}
	return c.read()
}

// read reads the published files, and finds the subscriptions to them.
func (c *Change) read() (err error) {
	if c.st, err = c.out.State(); err != nil {
		return err
	}
	c.clusters, c.listeners, c.retired = c.st.Clusters, c.st.Listeners, make(map[string]bool)
	for _, g := range c.st.Manifest.Retired {
		c.retired[g.File] = true
	}
	return c.subscribe()
}

// subscribe finds the subscriptions to the published files.
func (c *Change) subscribe() error {
	layers, _, err := c.out.Layers(c.files())
	if err == nil {
		c.subs = c.out.Subscribers(c.clusters, c.listeners, layers)
	}
	return err
}

// files returns the published files, sorted.
func (c *Change) files() []string {
	files := slices.Clone(c.st.Files)
	for file := range c.versions {
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(file string) bool { return c.version(file) == "" })
}

// version returns the version of a published file; "" if the file is not published or has no version.
func (c *Change) version(file string) string {
	if v, known := c.versions[file]; known {
		return v
	}
	if !c.st.Has(file) {
		return ""
	}
	was, _ := c.st.Manifest.Files.Get(file)
	version := was.Version
	// No publish repairs a retired file. Envoy has to run the file's present content, even if somebody edited
	// the file or the record lacks the file.
	if c.retired[file] {
		version = c.out.VersionInfo(file)
		c.versions[file] = version
	}
	return version
}

// running returns a function that returns the subscriptions of Envoys to the published files as
// they are now, before s moves some.
func (c *Change) running(s publish.Step) func() []envoy.Subscription {
	subs, before := c.subs, make(map[string]string)
	for _, f := range s.Write {
		before[f.Path] = c.version(f.Path)
	}
	for _, name := range s.Remove {
		before[name] = c.version(name)
	}
	return func() []envoy.Subscription {
		var list []envoy.Subscription
		for _, sub := range subs.All {
			version, moves := before[sub.File]
			if !moves {
				version = c.version(sub.File)
			}
			if version != "" {
				list = append(list, sub.Expect(version, true))
			}
		}
		return list
	}
}

// Before observes all Envoys that are subscribed to files of the step. Before the first step it
// fails where an Envoy could never confirm. Without that it would show only at the first step
// that an Envoy is subscribed to, when other files are already published.
func (c *Change) Before(ctx context.Context, s publish.Step) (err error) {
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
	wait, err := c.options.Fleet.Begin(ctx, c.expected, running)
	if err != nil {
		return err
	}
	c.asked = true
	if len(c.expected) > 0 {
		c.wait = wait
	}
	return nil
}

// After waits for the ACKs of the files of a step, and reports whether an Envoy answered. A
// *publish.RefusedError means that the Envoys refuse the step; any other error is ctx's.
func (c *Change) After(ctx context.Context, s publish.Step) (answered bool, err error) {
	if c.wait == nil {
		return true, nil // no Envoy is subscribed
	}
	outcome := c.wait.Await(ctx, envoy.AwaitOptions{Warm: c.writes(s, xds.Cluster)})
	if outcome.Err != nil {
		return false, outcome.Err
	}
	c.outcomes = append(c.outcomes, outcome)
	c.note(outcome)
	c.logOutcome(s.Name, outcome)
	if outcome.Verdict == envoy.RefusedByQuorum {
		refusal := c.refusal
		refusal.Time, refusal.Step, refusal.Findings = time.Now().UTC().Round(0), s.Name, c.refusals(ctx, outcome)
		refused := &publish.RefusedError{
			Refusal: refusal,
			Keep:    slices.Sorted(maps.Keys(c.acked)),
			Again:   c.pause(ctx, s, outcome),
		}
		if refused.Again > 0 {
			c.retries(refused)
		} else {
			c.retries(nil)
		}
		return true, refused
	}
	c.offered = ""
	c.retries(nil)
	return outcome.Answering > 0, nil
}

// writes reports whether a step writes the file of all resources of a type.
func (c *Change) writes(s publish.Step, t *xds.Type) bool {
	return slices.ContainsFunc(s.Write, func(f publish.File) bool { return f.Path == c.out.Format().Path(t, "") })
}

// expect finds the subscriptions that the step changes: those to the files that it writes,
// and new ones. It reads the resources from the bytes of the step: a rollback has nothing
// else.
func (c *Change) expect(s publish.Step) error {
	before := c.subs
	written := make(map[string]bool, len(s.Write))
	for _, f := range s.Write {
		c.versions[f.Path] = f.Version
		written[f.Path] = true
		for t, resources := range map[*xds.Type]*[]*xds.Resource{xds.Cluster: &c.clusters, xds.Listener: &c.listeners} {
			if f.Path == c.out.Format().Path(t, "") {
				*resources = c.out.Resources(f)
			}
		}
	}
	for _, name := range s.Remove {
		c.versions[name] = ""
	}
	changed := c.subs.To(written)
	if c.writes(s, xds.Cluster) || c.writes(s, xds.Listener) {
		if err := c.subscribe(); err != nil {
			return err
		}
		changed = c.subs.All
	}
	c.expected = nil
	for _, sub := range changed {
		if !written[sub.File] && before.Shares(sub) {
			continue
		}
		if version := c.version(sub.File); version != "" {
			expected := sub.Expect(version, !written[sub.File])
			expected.Changed = c.out.Changed(sub.File)
			c.expected = append(c.expected, expected)
		}
	}
	return nil
}

// note stores which secrets and endpoints every Envoy that counts has acknowledged: a
// rollback leaves them.
func (c *Change) note(o envoy.Outcome) {
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
