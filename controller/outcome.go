package controller

import (
	"fmt"
	"time"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/pipeline"
	"xdspub/publish"
)

// Verdict is what became of a source tree.
type Verdict string

const (
	// Published: its snapshot is out.
	Published Verdict = "published"
	// Invalid: findings forbid to publish it. What was out before stays.
	Invalid Verdict = "invalid"
	// Held: Envoy refused its snapshot before, and it is not tried again. What was out
	// before stays.
	Held Verdict = "held"
	// RefusedByEnvoy: Envoy refused its snapshot now.
	RefusedByEnvoy Verdict = "rejected"
)

// Outcome is a Verdict and what belongs to it.
type Outcome struct {
	Verdict Verdict
	// Snapshot is the snapshot's id; empty for Invalid.
	Snapshot string
	// Summary counts what the source tree holds.
	Summary diag.Summary
	// Findings are those of the source tree for Published and Invalid, and Envoy's for
	// Held and Rejected.
	Findings diag.List
	// Refusal is the one on record, for Held and Rejected.
	Refusal *publish.Refusal
	// Moved is what was written and removed.
	Moved publish.Result
	// Answers are what Envoys made of the steps; none where nobody asks Envoy.
	Answers []envoy.Outcome
	// Restored tells that what Rejected had moved was moved back, as far as there was
	// something to go back to.
	Restored bool
}

func outcomeOf(v Verdict, checked *pipeline.Checked, plan *pipeline.Plan, result pipeline.Result) Outcome {
	o := Outcome{Verdict: v, Summary: checked.Summary, Findings: checked.Diagnostics, Moved: result.Result, Answers: result.Outcomes}
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

// Message is the outcome in one sentence.
func (o Outcome) Message() string {
	switch o.Verdict {
	case Published:
		written, removed := Files(o.Moved)
		return fmt.Sprintf("snapshot %s: %s written, %d removed%s", o.Snapshot, diag.Count(written, "file"), removed, o.confirmed())
	case Held:
		return fmt.Sprintf("snapshot %s is held since Envoy refused it at %s: what was out before stays; --retry-held tries it again", o.Snapshot, o.Refusal.Time.Format(time.RFC3339))
	case RefusedByEnvoy:
		return fmt.Sprintf("snapshot %s: Envoy refused it in the step %q: %s", o.Snapshot, o.Refusal.Step, o.AfterRefusal())
	default:
		return InvalidMessage(o.Summary)
	}
}

// InvalidMessage says of an invalid source tree that it is not published.
func InvalidMessage(s diag.Summary) string { return s.String() + ": refused, nothing was published" }

// AfterRefusal says what is out after the Verdict Rejected.
func (o Outcome) AfterRefusal() string {
	switch {
	case !o.Restored:
		return "it could not be put back whole, the next run goes on with that"
	case len(o.Moved.Undone) == 0:
		return "there is nothing to put back, so it stays"
	}
	return "what was out before is out again"
}

// confirmed says in a few words what Envoys made of the steps.
func (o Outcome) confirmed() string {
	if len(o.Answers) == 0 {
		return ""
	}
	worst := o.Answers[0]
	for _, a := range o.Answers {
		if a.Verdict != envoy.Confirmed {
			worst = a
		}
	}
	return ", " + worst.String()
}
