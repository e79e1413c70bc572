package history

import (
	"fmt"
	"strings"
	"time"
)

// MinPrefix is the smallest number of digits that identify an entry or a commit.
const MinPrefix = 4

// UnknownError means that no entry has the id or the commit.
type UnknownError struct {
	What string // the id or the commit
}

func (e *UnknownError) Error() string {
	if len(e.What) < MinPrefix {
		return fmt.Sprintf("%q is too short: write at least %d digits", e.What, MinPrefix)
	}
	return fmt.Sprintf("the history has no entry %q: xdspub history lists the entries", e.What)
}

// AmbiguousError means that the ids or the commits of several entries have the same beginning.
type AmbiguousError struct {
	What  string // the beginning
	Items []Item // the latest first
}

// candidates is the number of entries that an AmbiguousError lists.
const candidates = 10

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is the beginning of %d entries: write more digits", e.What, len(e.Items))
	for _, i := range e.Items[:min(len(e.Items), candidates)] {
		if i.Time.IsZero() {
			fmt.Fprintf(&b, "\n    %s damaged", i.ID)
			continue
		}
		fmt.Fprintf(&b, "\n    %s", strings.TrimSpace(strings.Join([]string{i.ID, i.Time.Format(time.RFC3339), i.Snapshot, i.Revision}, " ")))
	}
	if more := len(e.Items) - candidates; more > 0 {
		fmt.Fprintf(&b, "\n    and %d more", more)
	}
	return b.String()
}

// BeforeError means that the history has no entry at or before a time.
type BeforeError struct {
	Time  time.Time
	First time.Time // of the first entry; zero if the history is empty
}

func (e *BeforeError) Error() string {
	if e.First.IsZero() {
		return "the history is empty: xdspub has published nothing since the history was turned on"
	}
	return fmt.Sprintf("the history begins at %s, and has no entry for %s", e.First.In(e.Time.Location()).Format(time.RFC3339), e.Time.Format(time.RFC3339))
}

// DirtyError means that the history has a commit only with changes that were not committed.
type DirtyError struct {
	Commit string
	Item   Item // the latest of these entries
}

func (e *DirtyError) Error() string {
	return fmt.Sprintf("the commit %s was published only with changes that were not committed: the latest such entry is %s", e.Commit, e.Item.ID)
}

// DamagedError means that a file of the history, or an entry, can't be used.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }
