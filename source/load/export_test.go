package load

import "time"

// SetClock sets the clock of l.
func (l *Loader) SetClock(now func() time.Time) { l.now = now }

// Files returns the resource files that Load has read.
func (r *Result) Files() []string { return resourceFiles(r.files) }
