package operator

import "time"

// Deadline is the end of a length of time. A clock that somebody sets does not move the end, because the machine also
// counts the time since its start. If the machine has started again, or if the directory is on another machine, the
// time of the day tells the end, which then comes after the whole Length at the latest.
type Deadline struct {
	At     time.Time     `json:"at"`             // the end, by the time of the day
	Length time.Duration `json:"length_ns"`      // the whole length
	Start  string        `json:"boot,omitempty"` // the id of the start of the machine
	Uptime time.Duration `json:"uptime_ns"`      // the end, as time since Start
}

// Clock reads the two clocks of a machine: the time of the day, and the time since the machine has started.
type Clock struct {
	Day    func() time.Time
	Uptime func() (start string, up time.Duration)
}

// SystemClock returns the Clock of this machine.
func SystemClock() Clock { return Clock{Day: time.Now, Uptime: uptime} }

// Now returns the time of the day as records store it: in UTC, without the monotonic clock.
func (c Clock) Now() time.Time { return c.Day().UTC().Round(0) }

// In returns the Deadline after a length of time.
func (c Clock) In(length time.Duration) Deadline {
	start, up := c.Uptime()
	return Deadline{At: c.Now().Add(length), Length: length, Start: start, Uptime: up + length}
}

// Left returns how long a Deadline lasts; 0 after its end.
func (c Clock) Left(d Deadline) time.Duration {
	left := d.At.Sub(c.Day())
	if start, up := c.Uptime(); start == d.Start {
		left = d.Uptime - up
	}
	return min(max(left, 0), d.Length)
}

// leastJump is more than a time service moves the clock between two looks.
const leastJump = time.Second

// Adjust sets the clocks of d to those of the machine. Adjust returns false if they agree: the machine has not started
// again since, and nobody has set its clock.
func (d *Deadline) Adjust(c Clock) (moved bool) {
	is := c.In(c.Left(*d))
	is.Length = d.Length
	moved = is.Start != d.Start || is.At.Sub(d.At).Abs() >= leastJump
	if moved {
		*d = is
	}
	return moved
}

// Ago returns a Clock that is behind c by d.
func (c Clock) Ago(d time.Duration) Clock {
	return Clock{
		Day: func() time.Time { return c.Day().Add(-d) },
		Uptime: func() (string, time.Duration) {
			start, up := c.Uptime()
			return start, up - d
		},
	}
}
