package operator

import "fmt"

// Mode is what the decisions let a watch publish.
type Mode int

const (
	// Follows: the source tree.
	Follows Mode = iota
	// Paused: nothing.
	Paused
	modes
)

// input is an event that changes the decisions.
type input int

const (
	pauseAsked   input = iota // an operator pauses
	pauseChanged              // an operator replaces the pause
	pauseOver                 // the time of the pause is over
	resumeAsked               // an operator resumes
	inputs
)

// refused is the place of an input in transitions that changes nothing, because the mode does not allow the input.
const refused Mode = -1

// transitions maps a mode and an input to the next mode.
var transitions = [modes][inputs]Mode{
	Follows: {pauseAsked: Paused, pauseChanged: Paused, pauseOver: refused, resumeAsked: refused},
	Paused:  {pauseAsked: refused, pauseChanged: Paused, pauseOver: Follows, resumeAsked: Follows},
}

// Mode returns the mode of the decisions.
func (d Decisions) Mode() Mode {
	if d.Paused != nil {
		return Paused
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

// Resume removes the pause, and returns the removed pause; nil if there is none.
func (d *Decisions) Resume() *Pause { return d.end(resumeAsked) }

// Adjust adjusts the Deadlines of the decisions, and reports whether a clock has moved.
func (d *Decisions) Adjust(c Clock) (moved bool) {
	return d.Paused != nil && d.Paused.Ends != nil && d.Paused.Ends.Adjust(c)
}

// EndPause removes a pause whose time is over, and returns the removed pause; nil if no time is over.
func (d *Decisions) EndPause(c Clock) *Pause {
	if d.Paused == nil || d.Paused.Ends == nil || c.Left(*d.Paused.Ends) > 0 {
		return nil
	}
	return d.end(pauseOver)
}

func (d *Decisions) end(i input) *Pause {
	if !d.allows(i) {
		return nil
	}
	p := d.Paused
	d.Paused = nil
	return p
}
