package operator

import (
	"fmt"
	"slices"
)

// Mode is what the decisions let a watch publish.
type Mode int

const (
	// Follows: the source tree.
	Follows Mode = iota
	// Paused: nothing.
	Paused
	// Pinned: the snapshot of the pin, until the source tree changes.
	Pinned
	// PausedPinned: the snapshot of the pin.
	PausedPinned
	// Tried: the source tree of the trial, and nothing else.
	Tried
	// PausedTried: nothing.
	PausedTried
	modes
)

// input is an event that changes the decisions.
type input int

const (
	pauseAsked     input = iota // an operator pauses
	pauseChanged                // an operator replaces the pause
	pauseOver                   // the time of the pause is over
	pinAsked                    // an operator pins
	pinRefused                  // the snapshot of the pin can't be published
	sourceChanged               // the source tree has changed, and is published
	resumeAsked                 // an operator resumes
	trialBegun                  // a source tree is about to be published, and needs a confirmation
	trialRefused                // the snapshot of the trial can't be published
	trialConfirmed              // an operator confirms the snapshot of the trial
	inputs
)

// refused is the place of an input in transitions that changes nothing, because the mode does not allow the input.
const refused Mode = -1

// transitions maps a mode and an input to the next mode. pinRefused restores Pin.Before or Pin.Trial, and then leads to
// the mode of these. trialRefused restores Trial.Pin.
var transitions = [modes][inputs]Mode{
	Follows: {
		pauseAsked: Paused, pauseChanged: Paused, pauseOver: refused,
		pinAsked: Pinned, pinRefused: refused, sourceChanged: refused, resumeAsked: refused,
		trialBegun: Tried, trialRefused: refused, trialConfirmed: refused,
	},
	Paused: {
		pauseAsked: refused, pauseChanged: Paused, pauseOver: Follows,
		pinAsked: PausedPinned, pinRefused: refused, sourceChanged: refused, resumeAsked: Follows,
		trialBegun: refused, trialRefused: refused, trialConfirmed: refused,
	},
	Pinned: {
		pauseAsked: PausedPinned, pauseChanged: PausedPinned, pauseOver: refused,
		pinAsked: Pinned, pinRefused: Follows, sourceChanged: Follows, resumeAsked: Follows,
		trialBegun: Tried, trialRefused: refused, trialConfirmed: refused,
	},
	PausedPinned: {
		pauseAsked: refused, pauseChanged: PausedPinned, pauseOver: Pinned,
		pinAsked: PausedPinned, pinRefused: Paused, sourceChanged: refused, resumeAsked: Follows,
		trialBegun: refused, trialRefused: refused, trialConfirmed: refused,
	},
	Tried: {
		pauseAsked: PausedTried, pauseChanged: PausedTried, pauseOver: refused,
		pinAsked: Pinned, pinRefused: refused, sourceChanged: refused, resumeAsked: refused,
		trialBegun: refused, trialRefused: Follows, trialConfirmed: Follows,
	},
	PausedTried: {
		pauseAsked: refused, pauseChanged: PausedTried, pauseOver: Tried,
		pinAsked: PausedPinned, pinRefused: refused, sourceChanged: refused, resumeAsked: Tried,
		trialBegun: refused, trialRefused: Paused, trialConfirmed: Paused,
	},
}

// Mode returns the mode of the decisions.
func (d Decisions) Mode() Mode {
	switch {
	case d.Paused != nil && d.Trial != nil:
		return PausedTried
	case d.Trial != nil:
		return Tried
	case d.Paused != nil && d.Pinned != nil:
		return PausedPinned
	case d.Paused != nil:
		return Paused
	case d.Pinned != nil:
		return Pinned
	}
	return Follows
}

// allows reports whether the decisions allow an input.
func (d Decisions) allows(i input) bool { return transitions[d.Mode()][i] != refused }

// TakenError means that the directory is paused already.
type TakenError struct{ Pause Pause }

func (e *TakenError) Error() string {
	return fmt.Sprintf("paused already, %s", e.Pause.Decision)
}

// Pause records a pause. Without replace, the error is a *TakenError if the directory is paused already.
func (d *Decisions) Pause(p Pause, replace bool) error {
	i := pauseAsked
	if replace {
		i = pauseChanged
	}
	if !d.allows(i) {
		return &TakenError{*d.Paused}
	}
	d.Paused = &p
	return nil
}

// Resume removes the pause and the pin, and returns them. Both may be nil. A trial goes on, even if the pin is about to
// undo the trial.
func (d *Decisions) Resume() (*Pause, *Pin) {
	pause, pin := d.Paused, d.Pinned
	if d.allows(resumeAsked) {
		d.Paused, d.Pinned = nil, nil
	}
	if pin != nil && pin.Trial != nil {
		d.Trial = pin.Trial
	}
	return pause, pin
}

// Adjust adjusts the Deadlines of the decisions, and reports whether a clock has moved.
func (d *Decisions) Adjust(c Clock) (moved bool) {
	if d.Paused != nil && d.Paused.Ends != nil {
		moved = d.Paused.Ends.Adjust(c)
	}
	if d.Trial != nil {
		moved = d.Trial.Ends.Adjust(c) || moved
	}
	return moved
}

// EndPause removes a pause whose time is over, and returns the removed pause; nil if no time is over.
func (d *Decisions) EndPause(c Clock) *Pause {
	p := d.Paused
	if !d.allows(pauseOver) || p.Ends == nil || c.Left(*p.Ends) > 0 {
		return nil
	}
	d.Paused = nil
	return p
}

// Pin records a pin, which replaces a trial. Source trees that wait for an earlier pin wait for the new one, too.
func (d *Decisions) Pin(p Pin) {
	p.Trial, d.Trial = d.Trial, nil
	if before := d.Pinned; before != nil {
		p.Before = new(*before)
		p.Before.Before = nil
		p.Trial, p.Before.Trial = before.Trial, nil
		p.Waits = append(slices.Clone(before.Waits), p.Waits...)
	}
	var waits []string
	for _, hash := range p.Waits {
		if !slices.Contains(waits, hash) {
			waits = append(waits, hash)
		}
	}
	p.Waits = waits[max(0, len(waits)-maxWaits):]
	d.Pinned = &p
}

// RefusePin removes a pin whose snapshot was refused, and restores Pin.Before and Pin.Trial. RefusePin returns the
// removed pin; nil if the directory is not pinned, or if the pin is Done.
func (d *Decisions) RefusePin() *Pin {
	p := d.Pinned
	if !d.allows(pinRefused) || p.Done {
		return nil
	}
	if d.Pinned, d.Trial = p.Before, p.Trial; p.Trial != nil {
		d.Pinned = nil
	}
	return p
}

// DonePin notes that the snapshot of the pin is published, which ends Pin.Trial. DonePin returns false if that is
// known.
func (d *Decisions) DonePin() bool {
	if d.Pinned == nil || d.Pinned.Done {
		return false
	}
	p := *d.Pinned
	if t := p.Trial; t != nil {
		how := Replaced
		if p.Undoes {
			how = Undone
		}
		d.Ended = &Ended{p.Decision, t.Snapshot, how}
	}
	p.Done, p.Trial = true, nil
	d.Pinned = &p
	return true
}

// EndPin removes the pin because the source tree has changed, and returns the removed pin; nil if the mode is not
// Pinned.
func (d *Decisions) EndPin() *Pin {
	if !d.allows(sourceChanged) {
		return nil
	}
	p := d.Pinned
	d.Pinned = nil
	return p
}

// Follows reports whether a source tree is published: nothing is paused, and neither a pin nor a trial keeps the tree.
// ids are the hash of the tree without its secrets, the id of its snapshot, and that of all variants.
func (d Decisions) Follows(ids ...string) bool {
	waits := func(id string) bool { return slices.Contains(d.Pinned.Waits, id) }
	mode := d.Mode()
	switch mode {
	case Tried:
		return slices.Contains(ids, d.Trial.Source)
	case Pinned:
		return !slices.ContainsFunc(ids, waits)
	}
	return mode == Follows
}
