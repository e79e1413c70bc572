package operator

import (
	"errors"
	"fmt"
	"time"

	"xdspub/watch/control"
)

// Trial is a published snapshot that is undone at the end of a Deadline, unless an operator confirms the snapshot.
// The Decision says who has published.
type Trial struct {
	control.Decision
	// Snapshot is the id of the snapshot. Source is the id of its source tree, with the variants for all clients.
	Snapshot string `json:"snapshot"`
	Source   string `json:"source"`
	// Entry is the id of the entry of the history that is published in place of the snapshot, unless an operator
	// confirms the snapshot. Before is the id of the snapshot of the entry, published at EntryTime.
	Entry     string    `json:"entry"`
	Before    string    `json:"before"`
	EntryTime time.Time `json:"entry_time"`
	Ends      Deadline  `json:"ends"`
	// Done means that the snapshot was published. Before, a refusal of the snapshot ends the trial.
	Done bool `json:"done,omitempty"`
	// Stuck is why the entry can't be published; empty before somebody has tried.
	Stuck string `json:"stuck,omitempty"`
	// Pin is the pin that the trial replaces; nil if the trial replaces no pin, or is Done.
	Pin *Pin `json:"pin,omitempty"`
}

// MaxTrial is the longest time to the end of a trial.
const MaxTrial = 7 * 24 * time.Hour

// maxStuck bounds Trial.Stuck, in bytes.
const maxStuck = 4 << 10

// check returns an error if the trial is not one that this program writes.
func (t *Trial) check() error {
	if err := t.Check(); err != nil {
		return err
	}
	switch longest := max(len(t.Snapshot), len(t.Source), len(t.Entry), len(t.Before)); {
	case t.Snapshot == "" || t.Source == "" || t.Entry == "" || longest > maxID:
		return errors.New("it has no snapshot, or no entry")
	case t.Ends.Length <= 0 || t.Ends.Length > MaxTrial:
		return errors.New("it has no end")
	case len(t.Stuck) > maxStuck:
		return errors.New("its reason is too long")
	case t.Pin == nil:
		return nil
	case t.Pin.Trial != nil:
		return errors.New("it has replaced a trial")
	}
	return t.Pin.check()
}

// Shown returns the trial as views show it; nil before the snapshot is published.
func (t *Trial) Shown(c Clock) *control.Trial {
	if t == nil || !t.Done {
		return nil
	}
	until := t.Ends.At // of the past
	if left := c.Left(t.Ends); left > 0 {
		until = c.Now().Add(left)
	}
	return &control.Trial{
		Decision: t.Decision, Snapshot: t.Snapshot, Until: until.UTC(), Overdue: t.IsOverdue(c), Entry: t.Entry, EntryTime: t.EntryTime, Stuck: t.Stuck,
	}
}

// IsOverdue reports whether the time of the trial is over.
func (t *Trial) IsOverdue(c Clock) bool { return c.Left(t.Ends) == 0 }

// Ended is the end of the last trial, which answers an operator who comes too late.
type Ended struct {
	control.Decision
	Snapshot string `json:"snapshot"` // that was on trial
	How      How    `json:"how"`
}

// How says how a trial has ended.
type How string

const (
	// Confirmed: an operator has confirmed the snapshot.
	Confirmed How = "confirmed"
	// Undone: the snapshot before is published again.
	Undone How = "undone"
	// Replaced: an operator has rolled back to an entry of the history.
	Replaced How = "rolled back"
)

// check returns an error if the end is not one that this program writes.
func (e *Ended) check() error {
	if e.Snapshot == "" || len(e.Snapshot) > maxID || e.How != Confirmed && e.How != Undone && e.How != Replaced {
		return errors.New("it has no snapshot, or no end")
	}
	return e.Check()
}

// String returns how the trial has ended, as a sentence.
func (e *Ended) String() string {
	return fmt.Sprintf("snapshot %s was %s %s", e.Snapshot, e.How, e.Decision)
}

// Begin records a trial. Begin returns false if the mode does not allow a trial.
func (d *Decisions) Begin(t Trial) bool {
	if !d.allows(trialBegun) {
		return false
	}
	t.Pin, d.Pinned, d.Trial = d.Pinned, nil, &t
	return true
}

// RefuseTrial removes a trial whose snapshot was refused, and restores Trial.Pin. RefuseTrial returns false if there is
// no trial, or if the trial is Done.
func (d *Decisions) RefuseTrial() bool {
	t := d.Trial
	if !d.allows(trialRefused) || t.Done {
		return false
	}
	d.Trial, d.Pinned = nil, t.Pin
	return true
}

// DoneTrial notes that the snapshot of the trial is published, and sets the end of the trial. DoneTrial returns the pin
// that the trial has ended, and false if the trial is Done already.
func (d *Decisions) DoneTrial(ends Deadline) (ended *Pin, ok bool) {
	if d.Trial == nil || d.Trial.Done {
		return nil, false
	}
	t := *d.Trial
	ended = t.Pin
	t.Done, t.Ends, t.Pin = true, ends, nil
	d.Trial = &t
	return ended, true
}

// Extend sets the end of the trial.
func (d *Decisions) Extend(ends Deadline) {
	d.Trial = new(*d.Trial)
	d.Trial.Ends = ends
}

// Stick notes why the trial can't be undone.
func (d *Decisions) Stick(why string) {
	d.Trial = new(*d.Trial)
	d.Trial.Stuck = why[:min(len(why), maxStuck)]
}

// Confirm ends the trial: its snapshot stays. Confirm returns the ended trial, or nil.
func (d *Decisions) Confirm(by control.Decision) *Trial {
	t := d.Trial
	if !d.allows(trialConfirmed) {
		return nil
	}
	d.Trial, d.Ended = nil, &Ended{by, t.Snapshot, Confirmed}
	return t
}
