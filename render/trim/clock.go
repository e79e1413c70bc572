package trim

import (
	"time"

	"xdspub/event"
	"xdspub/render/publish"
)

// Clock notices when somebody sets the clock forward while a watch runs. The record of an
// output directory holds times of the day, as it outlives the process; a clock that is set
// forward would end the trim delay early. (A clock that is set back leaves times in the
// future: Trim replaces these by now.) Not for concurrent use.
type Clock struct {
	read func() (day time.Time, ran time.Duration)
	zero time.Time // the time of the day when ran was zero
}

// NewClock returns a Clock that reads two clocks: the time of the day, and the time since some
// start, which nobody can set.
func NewClock(read func() (day time.Time, ran time.Duration)) *Clock {
	c := &Clock{read: read}
	c.zero = c.zeroNow()
	return c
}

// SystemClock returns the Clock of the machine.
func SystemClock() *Clock {
	start := time.Now()
	return NewClock(func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(start)
	})
}

func (c *Clock) zeroNow() time.Time {
	day, ran := c.read()
	return day.Add(-ran)
}

// leastJump is more than a time service moves the clock between two readings. Smaller jumps
// add up.
const leastJump = time.Second

// jump returns by how much the clock was set forward since KeepTime moved the record.
func (c *Clock) jump() time.Duration {
	zero := c.zeroNow()
	by := zero.Sub(c.zero)
	if by < 0 {
		c.zero = zero
	}
	if by < leastJump {
		return 0
	}
	return by
}

// KeepTime moves the times on record by as much as the clock was set forward, so that no trim
// delay ends early. Call it after Recover and before Plan; Trim begins with it. After an
// error it moves all times once more: Trim replaces times in the future by now, and removes
// nothing too early.
func (t *Trimmer) KeepTime(d *publish.Dir) error {
	c := t.options.Clock
	if c == nil {
		return nil
	}
	by := c.jump()
	if by == 0 {
		return nil
	}
	if err := d.Shift(by); err != nil {
		return err
	}
	c.zero = c.zero.Add(by)
	t.options.Log.Write(event.ClockSet{By: by})
	return nil
}
