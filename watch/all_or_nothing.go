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

// Objection returns the finding that keeps the other targets from being published, if Options.AllOrNothing is
// set and this target can't be published. A target objects if its source tree is invalid (plan is nil), or if
// its snapshot is held. Objection returns nil if the target can be published.
func (c *Controller) Objection(checked *check.Result, plan *planner.Plan) *diag.Diagnostic {
	var d diag.Diagnostic
	switch {
	case plan == nil:
		d = check.OtherTarget(c.options.Target, checked.Summary.String(), checked.Diagnostics)
	case plan.Held != nil:
		message := fmt.Sprintf("Envoy rejected its snapshot %s at %s", plan.ID, plan.Held.Time.Format(time.RFC3339))
		d = check.OtherTarget(c.options.Target, message, plan.Held.Findings)
	default:
		return nil
	}
	return &d
}

// agreement collects the objections of all targets to one look at the source tree, if the targets are
// published together or not at all.
type agreement struct {
	decided chan struct{}

	mu       sync.Mutex
	silent   map[publisherKey]bool // targets that have not answered
	refused  *diag.Diagnostic      // the first objection; nil if no target objects
	outdated bool
}

// errOutdated means that a newer look has replaced the look of an agreement.
var errOutdated = errors.New("the source tree was looked at again")

func newAgreement(all []Options) *agreement {
	a := &agreement{decided: make(chan struct{}), silent: make(map[publisherKey]bool)}
	for _, o := range all {
		a.silent[o.key()] = true
	}
	return a
}

// say records the answer of a target: its objection, or nil. Only the first answer of a target counts.
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

// outdate ends all waits with errOutdated, unless the agreement is already decided.
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

// wait waits for the answers of all targets. wait returns the objection of another target, or nil. The error
// is errOutdated, or the error of ctx.
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

// agree waits until all targets agree to a look, and returns plan. If another target objects, agree adds that
// objection to checked and returns a nil plan. If w itself objects, agree returns plan without waiting.
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
