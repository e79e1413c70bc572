// Package operator keeps the decisions of the operators of an output directory, such as a pause, in
// .xdspub/operator.json. So decisions outlive each process. A process that has locked the directory
// changes them; every process may read them.
//
//	d, err := operator.Read("out")
//	err = d.Pause(operator.Pause{Decision: who}, false)
//	err = d.Write(dir)
package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xdspub/render/publish"
	"xdspub/watch/control"
)

const (
	record = "operator.json"
	layout = 1
)

// Pause is the decision that no file of the output directory changes.
type Pause struct {
	control.Decision
	// Ends is when the pause ends by itself; nil if only a resume ends it.
	Ends *Deadline `json:"ends,omitempty"`
}

// Pin is the decision that a snapshot of the history is published in place of the source tree. While there is no pause,
// a change of the source tree ends the pin.
type Pin struct {
	control.Decision
	// Entry is the id of the entry of the history. Snapshot is the id of its snapshot, published at EntryTime.
	Entry     string    `json:"entry"`
	Snapshot  string    `json:"snapshot"`
	EntryTime time.Time `json:"entry_time"`
	// From is the id of the entry that was published before; empty if unknown.
	From string `json:"from,omitempty"`
	// WithSecrets means that secrets come from the entry. Without WithSecrets, secrets come from the source tree.
	WithSecrets bool `json:"with_secrets,omitempty"`
	// Waits are the source trees that wait: their hashes without secrets, or the ids of their snapshots.
	Waits []string `json:"waits"`
	// Done means that the snapshot was published. Before, a refusal of the snapshot ends the pin.
	Done bool `json:"done,omitempty"`
	// Undoes means that the pin undoes a trial.
	Undoes bool `json:"undoes,omitempty"`
	// Before is the replaced pin; nil if the directory was not pinned.
	Before *Pin `json:"before,omitempty"`
	// Trial is the trial that the pin replaces. A pin that is Done has none.
	Trial *Trial `json:"trial,omitempty"`
}

const (
	maxWaits = 20  // bounds Pin.Waits
	maxID    = 100 // bounds an id, in bytes
)

// check returns an error if a field of the pin is missing, too long, or otherwise invalid.
func (p *Pin) check() error {
	if err := p.Check(); err != nil {
		return err
	}
	switch {
	case p.Entry == "" || len(p.Entry) > maxID || max(len(p.Snapshot), len(p.From)) > maxID:
		return errors.New("it has no entry")
	case len(p.Waits) > maxWaits || slices.ContainsFunc(p.Waits, func(id string) bool { return len(id) > maxID }):
		return errors.New("its list of source trees is too long")
	case p.Before != nil && (p.Before.Before != nil || p.Before.Trial != nil), p.Trial != nil && p.Trial.Pin != nil:
		return errors.New("it has replaced too many pins")
	}
	if p.Trial != nil {
		if err := p.Trial.check(); err != nil {
			return fmt.Errorf("trial: %w", err)
		}
	}
	if p.Before != nil {
		return p.Before.check()
	}
	return nil
}

// Shown returns the pause as views show it.
func (p Pause) Shown(c Clock) control.Shown {
	s := control.Shown{Decision: p.Decision}
	if p.Ends != nil {
		s.Until = c.Now().Add(c.Left(*p.Ends))
	}
	return s
}

// Shown returns the pin as views show it.
func (p Pin) Shown() control.Shown {
	return control.Shown{Decision: p.Decision, Entry: p.Entry, EntryTime: p.EntryTime}
}

// Decisions are the decisions of the operators of an output directory. The zero value has none.
type Decisions struct {
	Layout int    `json:"layout"`
	Paused *Pause `json:"pause,omitempty"`
	Pinned *Pin   `json:"pin,omitempty"`
	// Guarded is the change that waits for an approval; nil for none. Approved is the unused approval; nil for none.
	Guarded  *control.Guarded `json:"guarded,omitempty"`
	Approved *Approval        `json:"approved,omitempty"`
	Trial    *Trial           `json:"trial,omitempty"`
	// Ended is the end of the last trial; nil before.
	Ended *Ended `json:"ended_trial,omitempty"`
}

// ErrDamaged means that the record of the decisions can't be read. A snapshot must then not be published. Write
// replaces the record.
var ErrDamaged = errors.New("the decisions of operators are unknown, and nothing is published")

// Read reads the decisions about the directory out. Without a record, Read returns the zero Decisions. The error wraps
// ErrDamaged if the record can't be read.
func Read(out string) (Decisions, error) {
	var d Decisions
	there, err := publish.ReadRecord(out, record, &d, func() error { return d.check() },
		fmt.Sprintf("xdspub resume --out %s replaces the file: a pause, a pin and a trial then end", out))
	if err != nil {
		return Decisions{}, fmt.Errorf("%w: %w", ErrDamaged, remedied(out, err))
	}
	if !there {
		return Decisions{}, nil
	}
	return d, nil
}

// remedied adds a remedy to an error of publish.ReadRecord. If the error has the right remedy already, remedied returns
// the error as it is.
func remedied(out string, err error) error {
	path := filepath.Join(out, ".xdspub", record)
	info, missing := os.Lstat(path)
	switch {
	case missing == nil && info.IsDir():
		return fmt.Errorf("read %s: it is a directory (move the directory away: a pause, a pin and a trial then end)", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (run this as the user of the watch, or give the file to that user)", err)
	}
	return err
}

// ShownIn returns the decisions about the directory out, which need not be locked, as views show them.
func ShownIn(out string) (control.Decisions, error) {
	d, err := Read(out)
	if err != nil {
		return control.Decisions{}, err
	}
	clock := SystemClock()
	d.EndPause(clock)
	return d.Shown(clock), nil
}

// Shown returns the decisions as views show them.
func (d Decisions) Shown(c Clock) (shown control.Decisions) {
	if d.Paused != nil {
		shown.Paused = new(d.Paused.Shown(c))
	}
	if d.Pinned != nil {
		shown.Pinned = new(d.Pinned.Shown())
	}
	shown.Trial = d.Trial.Shown(c)
	return shown
}

func (d Decisions) check() error {
	if p := d.Paused; p != nil {
		if err := p.Check(); err != nil {
			return fmt.Errorf("pause: %w", err)
		}
		if p.Ends != nil && p.Ends.Length <= 0 {
			return errors.New("pause: it has no length")
		}
	}
	if d.Pinned != nil {
		if err := d.Pinned.check(); err != nil {
			return fmt.Errorf("pin: %w", err)
		}
	}
	if d.Guarded != nil {
		if err := checkChange(d.Guarded.Change, d.Guarded.What); err != nil {
			return fmt.Errorf("guarded: %w", err)
		}
	}
	if d.Approved != nil {
		if err := d.Approved.check(); err != nil {
			return fmt.Errorf("approval: %w", err)
		}
	}
	if d.Trial != nil {
		if err := d.Trial.check(); err != nil {
			return fmt.Errorf("trial: %w", err)
		}
		if d.Pinned != nil {
			return errors.New("trial: there is a pin, too")
		}
	}
	if d.Ended != nil {
		if err := d.Ended.check(); err != nil {
			return fmt.Errorf("the last trial: %w", err)
		}
	}
	return nil
}

// Write replaces the record in an open directory.
func (d Decisions) Write(dir *publish.Dir) error {
	d.Layout = layout
	return dir.PutRecord(record, d)
}
