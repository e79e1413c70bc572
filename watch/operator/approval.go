package operator

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/watch/control"
)

// Approval is the decision to publish a change once, although the guards refuse the change.
type Approval struct {
	control.Decision
	// Change is the id of the change, and What says what the change removes.
	Change string `json:"change"`
	What   string `json:"what"`
	// Publishing is the id of the snapshot with the change, from the first step of the publish on. If the process is
	// killed, the rest of the change has another id.
	Publishing string `json:"publishing,omitempty"`
}

// check returns an error if a text of the approval is missing or too long.
func (a *Approval) check() error {
	if err := a.Check(); err != nil {
		return err
	}
	if len(a.Publishing) > maxID {
		return errors.New("the id of its snapshot is too long")
	}
	return checkChange(a.Change, a.What)
}

// checkChange returns an error if the id of a change, or the text about the change, is not one that this program
// writes. Messages and views print both.
func checkChange(id, what string) error {
	switch {
	case id == "" || len(id) > maxID || diag.ClipLine(id, maxID) != id:
		return errors.New("it has no change")
	case len(what) > control.MaxText+len("…") || diag.ClipLine(what, len(what)) != what:
		return errors.New("its text is not a line of a guard")
	}
	return nil
}

// Shown returns the approval as views show it.
func (a Approval) Shown() control.Shown { return control.Shown{Decision: a.Decision, Change: a.Change} }

// ShownApproval returns the unused approval as views show it; nil for none.
func (d Decisions) ShownApproval() *control.Shown {
	if d.Approved == nil {
		return nil
	}
	return new(d.Approved.Shown())
}

// GuardedIn returns the change that waits for an approval in the directory out, and the unused approval. Both may be
// nil. The directory need not be locked.
func GuardedIn(out string) (*control.Guarded, *control.Shown, error) {
	d, err := Read(out)
	return d.Guarded, d.ShownApproval(), err
}

// leastPrefix is the least length of an abbreviated id of a change.
const leastPrefix = 4

// Approve approves the change that waits, if id is the beginning of its id, and returns the Approval.
func (d *Decisions) Approve(id string, by control.Decision) (Approval, error) {
	a := d.Approved
	switch {
	case len(id) < leastPrefix:
		return Approval{}, fmt.Errorf("the id %q is too short: write at least %d characters", id, leastPrefix)
	case a != nil && strings.HasPrefix(a.Change, id):
		return Approval{}, fmt.Errorf("change %s is approved already, %s", a.Change, a.Decision)
	case d.Guarded == nil:
		return Approval{}, errors.New("no change waits for an approval; a dry run records none")
	case !strings.HasPrefix(d.Guarded.Change, id):
		return Approval{}, fmt.Errorf("no change %q waits for an approval; the change that waits is %s: %s", id, d.Guarded.Change, d.Guarded.What)
	}
	d.Approved = &Approval{Decision: by, Change: d.Guarded.Change, What: d.Guarded.What}
	d.Guarded = nil
	return *d.Approved, nil
}

// Withdraw removes the unused approval of a change, and returns the removed Approval. id is the beginning of the id of
// the change. The change waits for an approval again; since is the beginning of this wait.
func (d *Decisions) Withdraw(id string, since time.Time) (Approval, error) {
	a := d.Approved
	switch {
	case len(id) < leastPrefix:
		return Approval{}, fmt.Errorf("the id %q is too short: write at least %d characters", id, leastPrefix)
	case a == nil:
		return Approval{}, errors.New("no approval waits for its change")
	case !strings.HasPrefix(a.Change, id):
		return Approval{}, fmt.Errorf("change %q is not approved; the approved change is %s: %s", id, a.Change, a.What)
	}
	d.Approved, d.Guarded = nil, &control.Guarded{Change: a.Change, Since: since, What: a.What}
	return *a, nil
}

// Guard notes the change that waits for an approval. nil means that no change waits. Guard returns false if nothing is
// new.
func (d *Decisions) Guard(refused *control.Guarded) bool {
	was := d.Guarded
	if was == nil && refused == nil || was != nil && refused != nil && was.Change == refused.Change {
		return false
	}
	d.Guarded = refused
	return true
}

// Use notes that the snapshot of the approval is being published. Use returns false if that is known.
func (d *Decisions) Use(snapshot string) bool {
	if d.Approved == nil || d.Approved.Publishing == snapshot {
		return false
	}
	d.Approved = new(*d.Approved)
	d.Approved.Publishing = snapshot
	return true
}
