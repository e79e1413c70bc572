package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render/planner"
)

// Objection returns the finding that other targets have, with Options.AllOrNothing, while this one is not
// published: the findings make the source tree invalid for it, so that plan is nil, or its Envoys have
// rejected the snapshot before. It is nil where nothing keeps the others from being published.
func (c *Controller) Objection(checked *check.Result, plan *planner.Plan) *diag.Diagnostic {
	var d diag.Diagnostic
	switch {
	case plan == nil:
		d = check.OtherTarget(c.options.Target, checked.Summary.String(), checked.Diagnostics)
	case plan.Held != nil:
		d = check.OtherTarget(c.options.Target, fmt.Sprintf("Envoy rejected its snapshot %s at %s", plan.ID, plan.Held.Time.Format(time.RFC3339)), plan.Held.Findings)
	default:
		return nil
	}
	return &d
}

// agreement is what the targets of one look at the source tree say to their plans, where all of them are
// published or none.
type agreement struct {
	decided chan struct{}

	mu       sync.Mutex
	silent   map[publisherKey]bool // who has said nothing yet
	refused  *diag.Diagnostic      // why none is published; nil where nobody objects
	outdated bool
}

// errOutdated means that there is a newer look than the one that was to be agreed on.
var errOutdated = errors.New("the source tree was looked at again")

func newAgreement(all []Options) *agreement {
	a := &agreement{decided: make(chan struct{}), silent: make(map[publisherKey]bool)}
	for _, o := range all {
		a.silent[o.key()] = true
	}
	return a
}

// say takes up the objection of a target, nil for none. Only the first word of a target counts.
func (a *agreement) say(k publisherKey, objection *diag.Diagnostic) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.silent[k] {
		return
	}
	delete(a.silent, k)
	if objection != nil && !a.isDecided() {
		a.refused = objection
		close(a.decided)
	} else if len(a.silent) == 0 && !a.isDecided() {
		close(a.decided)
	}
}

// outdate ends the wait of all, where nothing is decided yet.
func (a *agreement) outdate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isDecided() {
		a.outdated = true
		close(a.decided)
	}
}

func (a *agreement) isDecided() bool {
	select {
	case <-a.decided:
		return true
	default:
		return false
	}
}

// wait returns the objection of another target, nil for none, once all have said something. The error is
// errOutdated, or that of ctx.
func (a *agreement) wait(ctx context.Context) (*diag.Diagnostic, error) {
	select {
	case <-a.decided:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.outdated {
		return nil, errOutdated
	}
	return a.refused, nil
}

// agree returns the plan once no target objects to what a look found; nil where one does. The findings then have its
// objection.
func (w *watching) agree(ctx context.Context, found *look, checked *check.Result, plan *planner.Plan) (*planner.Plan, error) {
	if found.agreement == nil {
		return plan, nil
	}
	own := w.Objection(checked, plan)
	found.agreement.say(w.key(), own)
	if own != nil {
		return plan, nil
	}
	objection, err := found.agreement.wait(ctx)
	if err != nil {
		return nil, err
	}
	if objection != nil {
		checked.Refuse(*objection)
		w.on(planObjected)
		return nil, nil
	}
	return plan, nil
}
