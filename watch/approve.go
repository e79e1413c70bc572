package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/validate/transition"
	"xdspub/watch/control"
	"xdspub/watch/operator"
)

// guarding is the verdict of the guards about the last planned source tree.
type guarding struct {
	refused *control.Guarded   // nil if they let the source tree through, or did not judge it
	used    *operator.Approval // the approval that lets plan through; nil for none
	gone    bool               // the source tree no longer has the change of the approval
	plan    *planner.Plan
	void    string // why Settle has ended an unused approval; empty if Settle has ended none
}

// The ways out of a refusal by a guard.
const (
	wayOut    = "if you mean it, use --allow-removal"
	approving = "approve" // a reason in news
)

// heedGuard plans a source tree that guards have judged: plan and findings are the result. An approval of the change
// lets the source tree through.
func (c *Controller) heedGuard(
	ctx context.Context, checked *check.Result, guard *transition.Guard, plan *planner.Plan, findings diag.List,
) (*planner.Plan, diag.List, error) {
	approved, err := c.approved()
	if err != nil {
		return nil, nil, err
	}
	change := guard.ID()
	if approved != nil && (approved.Change == change || approved.Publishing == c.servedID(checked)) {
		if change != "" { // otherwise all of the change is published
			if plan, findings, err = c.planned(ctx, checked, nil, nil); err != nil {
				return nil, findings, err
			}
		}
		c.guarding.used, c.guarding.plan = approved, plan
		return plan, findings, nil
	}
	if change == "" {
		c.guarding.gone = approved != nil
		return plan, findings, nil
	}
	c.guarding.refused = &control.Guarded{Change: change, Since: now(), What: diag.ClipLine(whatOf(findings), control.MaxText)}
	offer(findings, fmt.Sprintf("if you mean it, xdspub approve --out %s %s lets this change through, and --allow-removal all such changes", c.place(), change))
	return plan, findings, nil
}

// approved returns the approval that waits; nil for none. The directory need not be open.
func (c *Controller) approved() (*operator.Approval, error) {
	if c.kept() != nil {
		return c.decisions.Approved, nil
	}
	out, err := filepath.Abs(c.place())
	if err != nil {
		return nil, err
	}
	d, err := operator.Read(out)
	return d.Approved, err
}

// whatOf returns the messages of guards.
func whatOf(findings diag.List) string {
	var texts []string
	for _, f := range findings {
		if transition.IsGuard(f.Code) {
			texts = append(texts, strings.TrimPrefix(f.Message, "the change "))
		}
	}
	return strings.Join(texts, "; ")
}

// offer adds a way out to the help of the findings of guards.
func offer(findings diag.List, way string) {
	for i, f := range findings {
		if transition.IsGuard(f.Code) {
			findings[i].Help += "; " + way
		}
	}
}

// beginUse returns the approval that lets a plan through; nil for none. beginUse records that the plan is being
// published: after a kill, the next process publishes the rest.
func (c *Controller) beginUse(checked *check.Result, plan *planner.Plan) (*operator.Approval, error) {
	if c.guarding.used == nil || c.guarding.plan != plan {
		return nil, nil
	}
	d := c.decisions
	if !d.Use(c.servedID(checked)) {
		return c.guarding.used, nil
	}
	if err := d.Write(c.kept()); err != nil {
		return nil, err
	}
	c.decisions = d
	return c.guarding.used, nil
}

// KeepGuarded records the change that the guards have refused, if the last Plan was one without an open output
// directory. If a watch has locked the directory, KeepGuarded leaves that to the watch.
func (c *Controller) KeepGuarded() error {
	if c.guarding.refused == nil || c.kept() != nil {
		return nil
	}
	err := c.Open()
	if _, locked := errors.AsType[*publish.LockedError](err); locked {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.takeDecisions(); err != nil {
		return err
	}
	return c.Settle(Outcome{Verdict: Invalid})
}

// Settle records the change that waits for an approval, after Publish and Record, or when the source tree waits. Settle
// ends a used approval, and an approval of a change that the source tree no longer has: the same change would wait for
// an approval again.
func (c *Controller) Settle(o Outcome) error {
	if c.kept() == nil || o.Verdict == "" || c.Lost() {
		return nil
	}
	d := c.decisions
	new := d.Guard(c.guarding.refused)
	approved := d.Approved
	ends := approved != nil && (o.Verdict == Published || c.guarding.refused != nil || c.guarding.gone)
	if ends {
		d.Approved = nil
	}
	if !new && !ends {
		return nil
	}
	if err := d.Write(c.kept()); err != nil {
		return err
	}
	c.decisions = d
	if ends {
		c.endApproval(*approved, o)
	}
	if g := c.guarding.refused; new && g != nil {
		c.log.Write(event.Guarded{Change: g.Change, What: g.What, Published: c.SnapshotID()})
	}
	return nil
}

// endApproval logs the end of an approval.
func (c *Controller) endApproval(a operator.Approval, o Outcome) {
	switch {
	case c.guarding.refused != nil:
		c.guarding.void = "the wanted change is another one now: " + c.guarding.refused.Change
	case o.Approval == nil:
		c.guarding.void = "the source tree needs none any more"
	default:
		c.log.Write(event.ApprovalUsed{By: a.By, Reason: a.Reason, Since: a.Since, Change: a.Change, Snapshot: o.Snapshot})
		return
	}
	c.log.Write(event.ApprovalVoid{By: a.By, Reason: a.Reason, Since: a.Since, Change: a.Change, Cause: c.guarding.void})
}

// Approve approves the change that the guards have refused for the directory out, into which no watch publishes, or
// withdraws the approval. The errors are those of Pause.
func Approve(out string, asked control.Approve) (control.Result, error) {
	return alone(out, func(d decider) (control.Result, error) {
		decide := d.approve
		if asked.Withdraw {
			decide = d.withdraw
		}
		_, result, err := decide(asked)
		return result, err
	})
}

// approve records an approval, and returns the decisions with it.
func (d decider) approve(asked control.Approve) (operator.Decisions, control.Result, error) {
	now, by, err := d.recorded(asked.By, asked.Reason)
	if err != nil {
		return now, control.Result{}, err
	}
	a, err := now.Approve(asked.Change, by)
	if err != nil {
		return now, control.Result{}, &control.ConflictError{Reason: fmt.Sprintf("%s: %v", d.out, err)}
	}
	if err := now.Write(d.dir); err != nil {
		return now, control.Result{}, err
	}
	d.log.Write(event.Approved{By: a.By, Reason: a.Reason, Change: a.Change, What: a.What, Published: d.now})
	shown := a.Shown()
	return now, control.Result{
		Outcome: control.Approved, Snapshot: d.now, Approved: &shown,
		Message: fmt.Sprintf("change %s is approved: it %s; the next render or watch into %s publishes the change, once", a.Change, a.What, d.out),
	}, nil
}

// withdraw removes an unused approval, and returns the decisions without it. An approval whose change is published in
// part stays, because Envoy would keep half of the change.
func (d decider) withdraw(asked control.Approve) (operator.Decisions, control.Result, error) {
	now, by, err := d.recorded(asked.By, asked.Reason)
	if err != nil {
		return now, control.Result{}, err
	}
	a, err := now.Withdraw(asked.Change, by.Since)
	if err != nil {
		return now, control.Result{}, &control.ConflictError{Reason: fmt.Sprintf("%s: %v", d.out, err)}
	}
	in, err := publish.ReadIntent(d.dir.Path())
	if err != nil {
		return now, control.Result{}, err
	}
	if a.Publishing != "" && in != nil && in.To != in.From {
		return now, control.Result{}, &control.ConflictError{Reason: fmt.Sprintf(
			"change %s is published in part, and can't be withdrawn: the next render or watch into %s publishes the rest; undo the change then by xdspub rollback", a.Change, d.out)}
	}
	if err := now.Write(d.dir); err != nil {
		return now, control.Result{}, err
	}
	d.log.Write(event.ApprovalWithdrawn{
		By: by.By, Reason: by.Reason, ApprovedBy: a.By, ApprovedSince: a.Since, ApprovedReason: a.Reason, Change: a.Change, Published: d.now,
	})
	return now, control.Result{
		Outcome: control.Withdrawn, Snapshot: d.now,
		Message: fmt.Sprintf("the approval of change %s %s is withdrawn, and the change waits for an approval again", a.Change, a.Decision),
	}, nil
}

// withdraw executes a request to withdraw an approval. The pass shows what the guards say now.
func (w *watching) withdraw(ctx context.Context, d decider, asked control.Approve) (control.Result, error) {
	decisions, result, err := d.withdraw(asked)
	if err != nil {
		return result, err
	}
	w.decisions = decisions
	if next, err := w.turn(ctx, approving); err != nil {
		result.Message += "; the next pass: " + cmp.Or(next.Message, err.Error())
	}
	return result, nil
}

// approve executes a request to approve a change, and publishes the change. With asked.Withdraw, approve withdraws the
// approval instead.
func (w *watching) approve(ctx context.Context, asked control.Approve) (control.Result, error) {
	d, err := w.decider()
	if err != nil {
		return control.Result{}, err
	}
	if asked.Withdraw {
		return w.withdraw(ctx, d, asked)
	}
	decisions, result, err := d.approve(asked)
	if err != nil {
		return result, err
	}
	w.decisions = decisions
	w.showDecisions()
	change, shown := result.Approved.Change, result.Approved
	result, err = w.turn(ctx, approving)
	switch {
	case err != nil:
		result.Message = fmt.Sprintf("change %s is approved, and the next pass publishes it: %s", change, result.Message)
	case w.decisions.Approved != nil:
		result.Approved = shown
		result.Message = fmt.Sprintf("change %s is approved, and waits: %s", change, result.Message)
	case w.guarding.void != "":
		result.Message = fmt.Sprintf("the approval of change %s is void, since %s; %s", change, w.guarding.void, result.Message)
	default:
		result.Message = fmt.Sprintf("change %s is let through: %s", change, result.Message)
	}
	return result, err
}

// settle records what the guards have said of the source tree, and shows it.
func (w *watching) settle(o Outcome, reason string) {
	if err := w.Settle(o); err != nil {
		w.log.Write(event.Failed{Error: err, Reason: reason})
	}
	w.showDecisions()
}
