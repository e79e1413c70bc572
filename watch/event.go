package watch

// event is what the system says of a name in a watched folder, or of that folder.
type event struct {
	name string // free of links but in its last element
	op   op
}

// op is what happened. Its text is for logs.
type op string

const (
	created    op = "CREATE" // or moved here, unless it is replaced
	replaced   op = "REPLACE"
	removed    op = "REMOVE" // or moved away
	written    op = "WRITE"
	finished   op = "FINISH"
	attributes op = "CHMOD"
	// overflowed says that events were dropped.
	overflowed op = "OVERFLOW"
)
