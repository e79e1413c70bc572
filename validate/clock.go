package validate

import "time"

// Timed tells whether the time matters at all.
func (p *Pass) Timed() bool { return !p.now.IsZero() }

// Passed tells whether a moment is over. A resource is judged again once it is.
func (p *Pass) Passed(moment time.Time) bool {
	over := p.now.After(moment)
	if !over {
		p.Snapshot.taker.wait(moment)
	}
	return over
}
