package watch

import (
	"fmt"
	"strings"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/operator"
	"xdspub/watch/pipeline"
)

// Verdict is the result of a Publish.
type Verdict string

const (
	// Published: the snapshot is published.
	Published Verdict = "published"
	// Invalid: errors in the source tree prevent a publish. The snapshot before stays published.
	Invalid Verdict = "invalid"
	// Held: Envoy, or clients of the Server, refused this snapshot before. The snapshot before it stays published.
	Held Verdict = "held"
	// Waits: a decision of an operator, or a freeze, keeps the snapshot from being published. The snapshot before stays
	// published.
	Waits Verdict = "waits"
	// RefusedByEnvoy: Envoy refused the snapshot now.
	RefusedByEnvoy Verdict = "rejected"
)

// Outcome is a Verdict with its details.
type Outcome struct {
	Verdict Verdict
	// Snapshot is the id of the snapshot; empty for Invalid.
	Snapshot string
	// Served is the id of the snapshot for the Server, if Published. The Server gets all variants, the files one set.
	Served string
	// Summary counts the resources and findings of the source tree.
	Summary diag.Summary
	// Findings are the findings of the source tree for Published and Invalid, and Envoy's findings for Held
	// and RefusedByEnvoy.
	Findings diag.List
	// Pin is the pin whose snapshot was published; nil for the source tree.
	Pin *operator.Pin
	// Approval is the approval that has let the source tree through; nil without one.
	Approval *operator.Approval
	// Trial is the trial of the published snapshot; nil without one. Untried is why the snapshot needs no confirmation
	// in spite of Options.ConfirmWithin; empty without that option, or if no file has moved.
	Trial   *control.Trial
	Untried string
	// Decision is the decision of an operator, or the freeze, for Waits, with the way to publish nevertheless.
	Decision string
	// Refusal is the recorded refusal, for Held and RefusedByEnvoy.
	Refusal *publish.Refusal
	// Moved lists the written and removed files. WithoutFiles means that only a Server got the snapshot.
	Moved        publish.Result
	WithoutFiles bool
	// Revision is the git commit of the source tree; empty without git, or if nothing was published.
	Revision string
	// Began is the time before the first file moved; zero if nothing was published.
	Began time.Time
	// FilesTook is how long the files took, with the wait for Envoys. ClientsTook is how long the Server took, with
	// the wait for clients.
	FilesTook, ClientsTook time.Duration
	// Answers are the answers of the Envoys to the steps; empty if no Envoy is asked.
	Answers []envoy.Outcome
	// Restored means, for RefusedByEnvoy, that the rollback is complete or unnecessary: a first snapshot has
	// no predecessor.
	Restored bool
	// Part says what goes on if the source tree is refused, or frozen; nil if nothing may go on.
	Part *control.Part
	// TakenBack means that clients of the Server rejected the snapshot, and that the Server serves the
	// snapshot before again.
	TakenBack bool
}

// kept reports whether a refused snapshot stays published because it has no predecessor.
func (o Outcome) kept() bool { return !o.TakenBack && len(o.Moved.Undone) == 0 }

func outcomeOf(v Verdict, checked *check.Result, plan *planner.Plan, result pipeline.Result) Outcome {
	o := Outcome{Verdict: v, Summary: checked.Summary, Findings: checked.Diagnostics, Moved: result.Result, Answers: result.Outcomes, Revision: result.Revision}
	if plan != nil {
		o.Snapshot, o.Refusal = plan.ID, plan.Held
	}
	if o.Refusal != nil {
		o.Findings = o.Refusal.Findings
	}
	return o
}

// Files counts the files that were written and removed.
func Files(r publish.Result) (written, removed int) {
	for _, s := range r.Steps {
		written += len(s.Written)
		removed += len(s.Removed)
	}
	return written, removed
}

// Message returns the outcome in one sentence.
func (o Outcome) Message() string {
	switch o.Verdict {
	case Published:
		if o.WithoutFiles {
			return fmt.Sprintf("snapshot %s is served%s", o.Snapshot, o.tried())
		}
		written, removed := Files(o.Moved)
		return fmt.Sprintf("snapshot %s: %s written, %d removed%s%s", o.Snapshot, diag.Count(written, "file"), removed, o.confirmed(), o.tried())
	case Held:
		return fmt.Sprintf("snapshot %s is held: Envoy rejected it at %s, and the snapshot before stays published; --retry-held publishes it once more%s",
			o.Snapshot, o.Refusal.Time.Format(time.RFC3339), o.goesOn())
	case Waits:
		return fmt.Sprintf("snapshot %s waits: %s%s", o.Snapshot, o.Decision, o.goesOn())
	case RefusedByEnvoy:
		return fmt.Sprintf("snapshot %s: Envoy rejected it in step %q: %s", o.Snapshot, o.Refusal.Step, o.AfterRefusal())
	}
	if o.Part == nil {
		return InvalidMessage(o.Summary)
	}
	return o.Summary.String() + ": the source tree was not published" + o.goesOn()
}

// goesOn returns text about the part of a source tree that goes on.
func (o Outcome) goesOn() string {
	if o.Part == nil {
		return ""
	}
	return "; " + o.Part.String()
}

// InvalidMessage returns the message of an invalid source tree.
func InvalidMessage(s diag.Summary) string { return s.String() + ": nothing was published" }

// AfterRefusal returns text about the published snapshot after RefusedByEnvoy.
func (o Outcome) AfterRefusal() string {
	switch {
	case !o.Restored:
		return "the rollback is not complete, and the next run continues it"
	case o.kept():
		return "it stays published, since nothing was published before it"
	}
	return "the snapshot before is published again"
}

// tried returns text about the trial.
func (o Outcome) tried() string {
	switch {
	case o.Trial != nil:
		return "; it awaits confirmation until " + o.Trial.Until.Format(time.RFC3339)
	case o.Untried != "":
		return "; it needs no confirmation: " + o.Untried
	}
	return ""
}

// confirmed returns text about the worst answer of the Envoys.
func (o Outcome) confirmed() string {
	if worst := o.worst(); worst != nil {
		return ", " + worst.String()
	}
	return ""
}

// worst returns the last answer that is not a confirmation; the first answer if all are confirmations; nil if
// no Envoy was asked.
func (o Outcome) worst() *envoy.Outcome {
	if len(o.Answers) == 0 {
		return nil
	}
	worst := &o.Answers[0]
	for i, a := range o.Answers {
		if a.Verdict != envoy.Confirmed {
			worst = &o.Answers[i]
		}
	}
	return worst
}

// unconfirmed returns text about the worst answer of the Envoys; empty if they have acknowledged each step, or
// if no Envoy was asked.
func (o Outcome) unconfirmed() string {
	if worst := o.worst(); worst != nil && worst.Verdict != envoy.Confirmed {
		return strings.TrimPrefix(worst.String(), "unconfirmed: ")
	}
	return ""
}
