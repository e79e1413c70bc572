package pipeline

import (
	"time"

	"xdspub/publish"
)

// Clock notices that somebody sets the clock forward while a watch runs. The record of an output
// directory holds times of the day, as it outlives the process: how long something has
// been going they tell only as long as nobody does. (What is said to go since later, since a
// clock was set back, goes since now.) Not for concurrent use.
type Clock struct {
	read func() (day time.Time, ran time.Duration)
	zero time.Time // the time of the day when ran was zero
}

// NewClock takes two clocks that run side by side: the time of the day, and how long
// something has run, which nobody can set.
func NewClock(read func() (day time.Time, ran time.Duration)) *Clock {
	c := &Clock{read: read}
	c.zero = c.zeroNow()
	return c
}

// SystemClock is the machine's.
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

// leastJump is beyond what a time service moves the clock by while nobody looks. What is
// less adds up.
const leastJump = time.Second

// jump is by how much the clock was set forward and the record does not know yet.
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

// KeepTime has the times on record follow a clock that was set forward, so that what goes
// and drains has done so for as long as before. It comes after Recover and before Plan,
// and Trim begins with it. After an error it shifts all once more: what then goes since
// later than now goes since now, and nothing goes too early.
func (p *Pipeline) KeepTime(d *publish.Dir) error {
	c := p.options.Clock
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
	p.log.Warn("the clock was set forward, the times on record of what goes follow it", "by", by)
	return nil
}
