package publish

// OpenUnder is Open for tests of other packages. before runs before each call that changes the disk; if before
// returns an error, the call is not made and returns that error. The Dir flushes nothing, and its record gets a
// base soon.
func OpenUnder(out string, before func(call string) error) (*Dir, error) {
	return OpenLate(out, false, func(_ int, call string) error { return before(call) })
}

// OpenLate is OpenUnder with the number of the call, from 1. If late, the call is made nevertheless, before its error
// is returned.
func OpenLate(out string, late bool, before func(n int, call string) error) (*Dir, error) {
	return open(out, Options{maxChanged: 2}, &probe{root: out, quick: true, late: late, fault: before})
}
