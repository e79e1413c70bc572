package load

import "time"

// SetClock has l take now for the time.
func (l *Loader) SetClock(now func() time.Time) { l.now = now }

// Files returns the resource files that were read.
func (r *Result) Files() []string { return resourceFiles(r.files) }
