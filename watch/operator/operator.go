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

// Shown returns the pause as views show it.
func (p Pause) Shown(c Clock) control.Shown {
	s := control.Shown{Decision: p.Decision}
	if p.Ends != nil {
		s.Until = c.Now().Add(c.Left(*p.Ends))
	}
	return s
}

// Decisions are the decisions of the operators of an output directory. The zero value has none.
type Decisions struct {
	Layout int    `json:"layout"`
	Paused *Pause `json:"pause,omitempty"`
}

// ErrDamaged means that the record of the decisions can't be read. A snapshot must then not be published. Write
// replaces the record.
var ErrDamaged = errors.New("the decisions of operators are unknown, and nothing is published")

// Read reads the decisions about the directory out. Without a record, Read returns the zero Decisions. The error wraps
// ErrDamaged if the record can't be read.
func Read(out string) (Decisions, error) {
	var d Decisions
	there, err := publish.ReadRecord(out, record, &d, func() error { return d.check() },
		fmt.Sprintf("xdspub resume --out %s replaces the file: a pause then ends", out))
	if err != nil {
		return Decisions{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if !there {
		return Decisions{}, nil
	}
	return d, nil
}

// PausedIn returns the pause of the directory out, which need not be locked; nil without one.
func PausedIn(out string) (*control.Shown, error) {
	d, err := Read(out)
	clock := SystemClock()
	if err != nil || d.EndPause(clock) != nil || d.Paused == nil {
		return nil, err
	}
	shown := d.Paused.Shown(clock)
	return &shown, nil
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
	return nil
}

// Write replaces the record in an open directory.
func (d Decisions) Write(dir *publish.Dir) error {
	d.Layout = layout
	return dir.PutRecord(record, d)
}
