package watch

import (
	"context"
	"errors"
	"time"

	"xdspub/check"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/history"
	"xdspub/source/revision"
	"xdspub/xds"
)

// entered has the entry of the published snapshot.
type entered struct {
	id       string // empty for none
	outcome  history.Outcome
	revision string // the last noted commit
}

// Record records a published or rejected snapshot of a source tree in the history, after Publish. A snapshot that the
// history has already gets no second entry. An error is logged only, because no publish depends on the history.
func (c *Controller) Record(ctx context.Context, checked *check.Result, o Outcome) {
	if o.Verdict == Published || o.Verdict == RefusedByEnvoy {
		c.record(ctx, c.toPublish(checked), o)
	}
}

// record is Record for the resources of a snapshot.
func (c *Controller) record(ctx context.Context, of *xds.Snapshot, o Outcome) {
	if !c.opensHistory() {
		return
	}
	if t := c.decisions.Trial; t != nil {
		c.history.Protect(t.Entry)
	} else {
		c.history.Protect("")
	}
	item, err := c.history.Record(c.entry(ctx, o), of)
	if err != nil {
		c.log.Write(event.HistoryFailed{Snapshot: o.Snapshot, Error: err})
	}
	if o.Pin != nil && o.Verdict == Published && !o.Pin.Done && err == nil && o.Pin.From != "" {
		became := history.RolledBack
		if o.Pin.Undoes {
			became = history.Undone
		}
		err = c.history.Note(o.Pin.From, became, o.Pin.By)
		if _, pruned := errors.AsType[*history.UnknownError](err); err != nil && !pruned {
			c.log.Write(event.HistoryFailed{Snapshot: o.Snapshot, Error: err})
		}
	}
	if item.ID != "" {
		c.entered = entered{item.ID, item.Outcome(), o.Revision}
	}
}

// opensHistory reports whether the Controller has a history, and opens the history.
func (c *Controller) opensHistory() bool {
	d := c.kept()
	if d == nil || c.options.History.Keep == 0 {
		return false
	}
	if c.history == nil {
		o := c.options.History
		o.Log = c.log
		c.history = history.Open(d, o)
	}
	return true
}

// entry describes an Outcome for the history.
func (c *Controller) entry(ctx context.Context, o Outcome) history.Entry {
	e := history.Entry{
		Time: o.Began, Snapshot: o.Snapshot, Revision: o.Revision,
		Command: c.options.Command, By: c.options.By, Reason: c.options.Reason, Outcome: c.historyOutcome(o),
	}
	if o.Verdict == Published {
		e.Part = c.part()
	}
	if pin := o.Pin; pin != nil {
		e.Command, e.By, e.Reason, e.Of = "rollback", pin.By, pin.Reason, pin.Entry
		if pin.Undoes {
			e.Command = "undo"
		}
	} else if a := o.Approval; a != nil {
		e.Command, e.By, e.Reason = "approve", a.By, a.Reason
	} else if t := c.through; t != nil {
		e.Command, e.By, e.Reason = "resume", t.By, t.Reason
	}
	if o.Pin == nil && !c.writes() && c.options.Revision != nil {
		e.Revision = c.options.Revision(ctx)
	}
	if e.Revision != "" {
		about := c.options.About
		if about == nil {
			about = func(ctx context.Context, commit string) (author, subject string) {
				return revision.About(ctx, c.options.Source.Path, commit)
			}
		}
		e.Author, e.Subject = about(ctx, e.Revision)
	}
	if c.dir != nil {
		if m, err := c.dir.Reader().Manifest(); err == nil {
			e.Layout, e.Format, e.EnvoyPath = m.Layout, m.Format, m.EnvoyPath
			if m.Snapshot == o.Snapshot && len(o.Moved.Steps) == 0 && !m.Published.IsZero() {
				e.Time = m.Published // an earlier process was killed before its Record
			}
		}
	}
	return e
}

// historyOutcome returns an Outcome in the words of the history.
func (c *Controller) historyOutcome(o Outcome) history.Outcome {
	switch {
	case o.Verdict == RefusedByEnvoy && o.kept():
		return history.RejectedKept
	case o.Verdict == RefusedByEnvoy:
		return history.Rejected
	case o.unconfirmed() != "", c.options.ClientsConfirm && c.options.Server.Unconfirmed() != "":
		return history.Unconfirmed
	case len(o.Answers) > 0, c.options.ClientsConfirm && c.options.Server.Acknowledged():
		return history.Acknowledged
	}
	return history.Unconfirmed // nobody was asked
}

// recordCommit notes the commit of a source tree whose snapshot the history has.
func (c *Controller) recordCommit(ctx context.Context, checked *check.Result, commit string) {
	if commit != "" && commit != c.entered.revision {
		c.Record(ctx, checked, Outcome{Verdict: Published, Snapshot: c.planID(checked), Revision: commit, Began: time.Now()})
	}
}

// recordAcknowledged notes that the Envoys have acknowledged the published snapshot after its publish.
func (c *Controller) recordAcknowledged() {
	if c.entered.id == "" || c.entered.outcome != history.Unconfirmed || !c.opensHistory() {
		return
	}
	if err := c.history.Note(c.entered.id, history.Acknowledged, ""); err != nil {
		c.log.Write(event.HistoryFailed{Error: err})
		return
	}
	c.entered.outcome = history.Acknowledged
}

// recordPass records the last pass, once everybody has seen its outcome: the history takes a flush of the disk.
func (w *watching) recordPass() {
	list := w.unrecorded
	w.unrecorded = nil
	for _, record := range list {
		if e := crash.Try(record); e != nil {
			w.log.Crashed(e)
		}
	}
}
