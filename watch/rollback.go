package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/source/load"
	"xdspub/watch/control"
	"xdspub/watch/operator"
	"xdspub/watch/pipeline"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// pinned is the snapshot of the pin, as it is published: with its findings of today.
type pinned struct {
	entry   string
	base    *xds.Snapshot // of the history
	item    history.Item
	secrets string        // the id of the secrets in result
	result  *check.Result // nil before
}

// pinned returns the checked snapshot of the pin; nil if source, the checked source tree, is to be published. source is
// nil if the source tree is unknown.
func (c *Controller) pinned(ctx context.Context, source *check.Result) (*check.Result, error) {
	pin := c.decisions.Pinned
	if pin == nil || c.followsNow(source) {
		return nil, nil
	}
	if c.pin == nil || c.pin.entry != pin.Entry {
		p, err := c.loadPinned(pin.Entry)
		if err != nil {
			return nil, fmt.Errorf("the snapshot of the pin %s: %w; xdspub resume --out %s ends the pin", pin.Shown(), err, c.place())
		}
		c.pin = p
	}
	return c.pin.judged(ctx, c, pin, source)
}

// followsNow reports whether the source tree has changed so that it is published in place of the pin.
func (c *Controller) followsNow(source *check.Result) bool {
	return source != nil && !source.Invalid(c.options.WarningsAsErrors) &&
		c.decisions.Follows(withoutSecrets(c.toPublish(source)), c.planID(source), c.servedID(source))
}

// registry returns the types of the user; nil for none.
func (c *Controller) registry() *xds.Registry {
	if v := c.options.Source.Envoy; v != nil {
		return v.Registry()
	}
	return nil
}

// loadPinned reads an entry of the history.
func (c *Controller) loadPinned(entry string) (*pinned, error) {
	h, err := history.Read(c.kept().Path())
	if err != nil {
		return nil, err
	}
	defer h.Close()
	item, err := h.Find(entry)
	if _, pruned := errors.AsType[*history.UnknownError](err); pruned {
		item, err = againOf(h, entry, err)
	}
	if err != nil {
		return nil, err
	}
	base, err := h.Load(item.ID, c.registry())
	return &pinned{entry: entry, base: base, item: item}, err
}

// againOf returns the latest entry of a rollback to a pruned entry. Both entries have the same resources except for
// secrets.
func againOf(h *history.History, entry string, pruned error) (history.Item, error) {
	for _, i := range h.Items() {
		if i.Of == entry && i.Outcome().WentOut() {
			return i, nil
		}
	}
	return history.Item{}, pruned
}

// judged returns the snapshot of the pin with the secrets of the source tree, or with those of the published files if
// the source tree is invalid or unknown.
func (p *pinned) judged(ctx context.Context, c *Controller, pin *operator.Pin, source *check.Result) (*check.Result, error) {
	s := p.base
	if !pin.WithSecrets {
		now, err := c.currentSecrets(source)
		if err != nil {
			return nil, err
		}
		s = withSecrets(p.base, now)
	}
	if id := s.ID(); p.result == nil || p.secrets != id {
		result, err := c.judgeAgain(ctx, "entry "+p.entry, s)
		if err != nil {
			return nil, err
		}
		p.secrets, p.result = id, result
	}
	return p.result.Copy(), nil
}

// judgeAgain judges a snapshot that was published before, by the rules and the clock of today. name stands for a file
// in findings. The errors that a published resource may have (Lenient) are no findings.
func (c *Controller) judgeAgain(ctx context.Context, name string, s *xds.Snapshot) (*check.Result, error) {
	o := c.options.Source
	o.Path, o.Disable, o.Targets, o.Owners = name, o.Lenient(), nil, nil // nobody knows the owners of that time
	result, err := check.New(o).Judge(ctx, s, &check.Result{Line: func(diag.Position) (string, bool) { return "", false }})
	if err != nil || o.Bootstrap == "" {
		return result, err
	}
	_, list, err := load.Bootstrap(o.Bootstrap, o.Envoy)
	if err == nil {
		result.Add(list)
	}
	return result, err
}

// currentSecrets returns a Snapshot that has the present secrets.
func (c *Controller) currentSecrets(source *check.Result) (*xds.Snapshot, error) {
	if source != nil && !source.Invalid(c.options.WarningsAsErrors) {
		return c.toPublish(source), nil
	}
	s, err := c.latest()
	switch {
	case s != nil || err != nil:
		return s, err
	case !c.writes(): // unknown
		return xds.NewSnapshot(nil), nil
	}
	return c.pipeline.Published()
}

// latest returns the published snapshot from the history; nil if the history does not have it.
func (c *Controller) latest() (*xds.Snapshot, error) {
	h, err := history.Read(c.kept().Path())
	if err != nil {
		return nil, err
	}
	defer h.Close()
	item, err := out(h, c.SnapshotID())
	if err != nil {
		return nil, nil
	}
	s, err := h.Load(item.ID, c.registry())
	if _, damaged := errors.AsType[*history.DamagedError](err); damaged {
		return nil, nil
	}
	return s, err
}

// withSecrets returns s with the secrets of now in place of its own. A secret that now lacks stays.
func withSecrets(s, now *xds.Snapshot) *xds.Snapshot {
	var list []*xds.Resource
	for _, r := range s.All() {
		if r.Type != xds.Secret || len(now.Named(r.Key)) == 0 {
			list = append(list, r)
		}
	}
	for _, r := range now.Of(xds.Secret) {
		if len(s.Named(r.Key)) > 0 {
			list = append(list, r)
		}
	}
	return xds.NewSnapshot(list)
}

// withoutSecrets returns the hash of all resources of s but its secrets, with their constraints.
func withoutSecrets(s *xds.Snapshot) string {
	list := slices.DeleteFunc(slices.Clone(s.All()), func(r *xds.Resource) bool { return r.Type == xds.Secret })
	return variants.Of(xds.NewSnapshot(list)).ID()
}

// out returns the entry of the history that is published.
func out(h *history.History, snapshot string) (history.Item, error) {
	item, ok := h.LatestOf(snapshot)
	if !ok {
		return item, errors.New("the published snapshot is not in the history")
	}
	return item, nil
}

// chosen returns the entry of the history that a request names.
func chosen(h *history.History, asked control.Rollback, now standing) (history.Item, error) {
	var item history.Item
	var err error
	switch {
	case asked.Entry != "":
		item, err = h.Find(asked.Entry)
	case !asked.At.IsZero():
		item, err = h.At(asked.At)
	case asked.Revision != "":
		item, err = h.Revision(asked.Revision)
	default:
		item, err = before(h, now)
	}
	return item, cmp.Or(err, item.Fault)
}

// before returns the entry before the published one. before leaves out rollbacks, and what was rolled back. If the
// published entry is of a rollback, before counts from the entry that the rollback has published. If a change was
// interrupted, or if a process was killed before it recorded the change, before is the last entry.
func before(h *history.History, now standing) (history.Item, error) {
	is, err := out(h, now.snapshot)
	if err == nil && now.interrupted != "" {
		return is, nil
	}
	found := err != nil
	for is.Of != "" {
		of, err := h.Find(is.Of)
		if err != nil {
			break
		}
		is = of
	}
	for _, i := range h.Items() {
		switch {
		case i.ID == is.ID:
			found = true
		case found && i.Of == "" && i.Outcome().WentOut() && i.Outcome() != history.RolledBack && i.Outcome() != history.Undone && i.Tree != is.Tree:
			return i, nil
		}
	}
	return history.Item{}, errors.New("the history has no entry before the published one")
}

// standing is what an output directory has, or what a Server without an output directory serves.
type standing struct {
	snapshot    string // the id of the published snapshot
	interrupted string // the id of the snapshot of a change that was interrupted; empty for none
}

// standing returns what is published.
func (c *Controller) standing() (s standing, err error) {
	s.snapshot = c.SnapshotID()
	if c.dir == nil {
		return s, nil
	}
	in, err := publish.ReadIntent(c.dir.Path())
	if err == nil && in != nil && in.From == s.snapshot && in.To != in.From {
		s.interrupted = in.To
	}
	return s, err
}

// propose returns the pin that a request asks for, and judges its snapshot. If the Result has an Outcome, it says why
// the snapshot can't be published. A *control.ConflictError means that the request names no such entry.
func (c *Controller) propose(ctx context.Context, asked control.Rollback, source *check.Result) (pin operator.Pin, r control.Result, err error) {
	pin.Decision = control.Decision{By: asked.By, Reason: asked.Reason, Since: c.clock.Now()}
	if err := pin.Check(); err != nil {
		return pin, r, &control.ConflictError{Reason: err.Error()}
	}
	h, err := history.Read(c.kept().Path())
	if err != nil {
		return pin, r, err
	}
	defer h.Close()
	now, err := c.standing()
	if err != nil {
		return pin, r, err
	}
	item, err := chosen(h, asked, now)
	if err == nil {
		err = c.suits(item)
	}
	if err != nil {
		return pin, r, &control.ConflictError{Reason: err.Error()}
	}
	if from, err := out(h, now.snapshot); err == nil && from.Of == "" && from.ID != item.ID {
		pin.From = from.ID
	}
	pin.Entry, pin.Snapshot, pin.EntryTime, pin.WithSecrets = item.ID, item.Snapshot, item.Time, asked.WithSecrets
	if pin.Waits, err = c.waitsFor(now, source); err != nil {
		return pin, r, err
	}
	p, err := c.loadPinned(item.ID)
	if damaged, ok := errors.AsType[*history.DamagedError](err); ok {
		return pin, r, &control.ConflictError{Reason: damaged.Error()}
	}
	if err != nil {
		return pin, r, err
	}
	checked, err := p.judged(ctx, c, &pin, source)
	if err != nil {
		return pin, r, err
	}
	guard := c.guard(checked)
	if asked.AllowRemoval {
		guard = nil
	}
	plan, err := c.plan(ctx, checked, planning{guard: guard})
	switch {
	case err != nil:
		return pin, r, err
	case plan == nil:
		r = resultOf(outcomeOf(Invalid, checked, nil, pipeline.Result{}))
		r.Message = fmt.Sprintf("entry %s can't be published today: %s", item.ID, r.Message)
	case plan.Held != nil:
		r = resultOf(outcomeOf(Held, checked, plan, pipeline.Result{}))
	}
	c.pin = p
	return pin, r, nil
}

// suits returns an error if an entry of the history was published in another form than the output directory has.
func (c *Controller) suits(item history.Item) error {
	if c.dir == nil {
		return nil // clients get any resources
	}
	m, err := c.dir.Reader().Manifest()
	switch {
	case err != nil:
		return err
	case item.Layout > publish.Layout:
		return fmt.Errorf("entry %s has the layout %d, which a newer xdspub has written, and this one knows %d: use the newer one", item.ID, item.Layout, publish.Layout)
	case item.Format != "" && item.Format != m.Format:
		return fmt.Errorf("entry %s was published in the format %s, and %s has %s: publish the source tree of that time", item.ID, item.Format, c.options.Out, m.Format)
	case item.EnvoyPath != "" && item.EnvoyPath != m.EnvoyPath:
		return fmt.Errorf("entry %s was published for Envoys that read %s, and the Envoys of %s read %s: publish the source tree of that time",
			item.ID, item.EnvoyPath, c.options.Out, m.EnvoyPath)
	}
	return nil
}

// waitsFor returns the source trees that a pin keeps from being published: the one that is read, and, if no pin is in
// force, the one that is published, and the one of an interrupted change.
func (c *Controller) waitsFor(now standing, source *check.Result) (ids []string, err error) {
	if source != nil {
		ids = append(ids, withoutSecrets(c.toPublish(source)))
	}
	if now.interrupted != "" {
		ids = append(ids, now.interrupted)
	}
	if c.decisions.Pinned != nil {
		return ids, nil
	}
	s, err := c.latest()
	if s != nil {
		ids = append(ids, withoutSecrets(s))
	}
	return append(ids, now.snapshot), err
}

// keepPin records a pin.
func (c *Controller) keepPin(pin operator.Pin) error {
	d := c.decisions
	d.Pin(pin)
	if err := d.Write(c.kept()); err != nil {
		return err
	}
	c.decisions = d
	c.log.Write(event.Pinned{By: pin.By, Reason: pin.Reason, Entry: pin.Entry, Snapshot: pin.Snapshot, EntryTime: pin.EntryTime})
	return nil
}

// pinTried notes what became of the snapshot of the pin.
func (c *Controller) pinTried(o Outcome) error {
	switch o.Verdict {
	case RefusedByEnvoy, Held:
		return c.refusePin(o)
	case Published:
		if d := c.decisions; d.DonePin() {
			if err := d.Write(c.kept()); err != nil {
				return err
			}
			c.decisions = d
		}
	}
	return nil
}

// refusePin removes a pin whose snapshot was refused. A trial that the pin would have undone stays, and is stuck.
func (c *Controller) refusePin(o Outcome) error {
	d := c.decisions
	pin := d.RefusePin()
	if pin == nil {
		return nil
	}
	undoes := pin.Undoes && d.Trial != nil
	if undoes {
		d.Stick(o.Message())
	}
	if err := d.Write(c.kept()); err != nil {
		return err
	}
	if c.decisions, c.pin = d, nil; undoes {
		c.log.Write(event.UndoFailed{Snapshot: d.Trial.Snapshot, Entry: pin.Entry, Cause: o.Message()})
		return nil
	}
	c.log.Write(event.PinRefused{By: pin.By, Reason: pin.Reason, Entry: pin.Entry, Snapshot: pin.Snapshot})
	return nil
}

// endPin removes the pin because the source tree has changed and is published.
func (c *Controller) endPin() error {
	d := c.decisions
	pin := d.EndPin()
	if pin == nil {
		return nil
	}
	if err := d.Write(c.kept()); err != nil {
		return err
	}
	c.decisions, c.pin = d, nil
	c.log.Write(event.PinEnded{By: pin.By, Reason: pin.Reason, Since: pin.Since, Entry: pin.Entry})
	return nil
}

// Rollback publishes a snapshot of the history into an output directory into which no watch publishes, and pins it. The
// errors are those of Pause.
func Rollback(ctx context.Context, o Options, asked control.Rollback) (control.Result, error) {
	if err := isOutput(o.Out); err != nil {
		return control.Result{}, err
	}
	if operator.IsServer(o.Out) {
		return control.Result{}, fmt.Errorf("%s is the directory of serve --state, and no server runs: start the server, and roll back then; "+
			"after xdspub pause --out %[1]s, the server starts with the snapshot that it served last", o.Out)
	}
	c := New(o)
	if err := c.Open(); err != nil {
		return control.Result{}, err
	}
	defer c.Close()
	if err := c.Prepare(ctx); err != nil {
		return control.Result{}, err
	}
	pin, r, err := c.propose(ctx, asked, nil)
	if err != nil || r.Outcome != "" {
		return r, err
	}
	if err := c.keepPin(pin); err != nil {
		return control.Result{}, err
	}
	_, outcome, err := c.publishPin(ctx)
	if err != nil {
		return resultOf(outcome), fmt.Errorf("%w; the next pass of a watch, or xdspub rollback, continues", err)
	}
	return c.rolledBack(outcome, pin), nil
}

// rolledBack returns the Result of a rollback.
func (c *Controller) rolledBack(o Outcome, pin operator.Pin) control.Result {
	r := resultOf(o)
	if o.Verdict == Published {
		shown := pin.Shown()
		r.Pinned = &shown
		r.Message = fmt.Sprintf("rolled back to entry %s of %s, %s; the source tree waits until it changes, or until xdspub resume --out %s",
			pin.Entry, pin.EntryTime.Format(time.RFC3339), r.Message, c.place())
	}
	return r
}

// rollback executes a request to publish a snapshot of the history.
func (w *watching) rollback(ctx context.Context, asked control.Rollback) (r control.Result, err error) {
	if _, err := w.decider(); err != nil {
		return r, err
	}
	if w.source.options.Conflict != nil {
		if reason := w.source.options.Conflict(w.shown.Source, control.RetryHeld{Flags: asked.Flags}); reason != "" {
			return r, &control.ConflictError{Reason: fmt.Sprintf("the watch of %s rolls back with its own options: %s", w.place(), reason)}
		}
	}
	if err := w.ready(ctx); err != nil {
		return r, err
	}
	var source *check.Result
	if last := w.source.last.Load(); last != nil && last.result != nil {
		source = last.result.For(w.target).Copy()
	}
	w.Trust(false)
	w.on(planWaits) // the plan that judges the snapshot is not published
	pin, r, err := w.propose(ctx, asked, source)
	if err != nil || r.Outcome != "" {
		return r, err
	}
	if err := w.keepPin(pin); err != nil {
		return r, err
	}
	w.showDecisions()
	w.rolled = nil
	r, err = w.turn(ctx, rollingBack)
	if err != nil || w.rolled == nil {
		r.Message = fmt.Sprintf("%s; the rollback continues with the next pass", cmp.Or(r.Message, "the rollback is not complete"))
		return r, err
	}
	o := *w.rolled
	if o.Verdict != Published {
		_, err = w.turn(ctx, resuming) // shows again what is published
	}
	return w.rolledBack(o, pin), err
}

// conclude returns what a pass that has published the snapshot of the pin, or tried to, says of the source tree. So the
// views show the state of the source tree beside the pin. w.rolled keeps the outcome of the pin for the operator.
func (w *watching) conclude(p *pass, o Outcome) (Outcome, error) {
	w.rolled = &o
	if err := w.pinTried(o); err != nil || o.Verdict != Published {
		return o, err
	}
	if p.checked.Invalid(w.options.WarningsAsErrors) {
		return outcomeOf(Invalid, p.checked, nil, pipeline.Result{}), nil
	}
	return w.sourceWaits(p, &planner.Plan{ID: w.planID(p.checked)}), nil
}
