package load

import "time"

// SetClock has l take now for the time.
func (l *Loader) SetClock(now func() time.Time) { l.now = now }
