package publish

// OpenUnder is Open for tests of other packages: they are told of each call that
// changes the disk before it is made, and what they return is reported in its place.
// Nothing is flushed, and the record has a base soon.
func OpenUnder(out string, before func(call string) error) (*Dir, error) {
	return open(out, Options{maxChanged: 2}, &probe{root: out, quick: true, fault: func(_ int, call string) error { return before(call) }})
}
