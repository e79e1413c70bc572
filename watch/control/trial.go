package control

import (
	"fmt"
	"time"

	"xdspub/diag"
)

// Trial is a published snapshot that is undone unless an operator confirms the snapshot, as views show it. The Decision
// says who has published.
type Trial struct {
	Decision
	Snapshot string `json:"snapshot"`
	// Until is when the snapshot is undone. Overdue means that this time is over.
	Until   time.Time `json:"until"`
	Overdue bool      `json:"overdue"`
	// Entry is the entry of the history that is published again then, published first at EntryTime.
	Entry     string    `json:"entry"`
	EntryTime time.Time `json:"entry_time"`
	// Stuck is why the snapshot can't be undone; empty if nobody has failed to.
	Stuck string `json:"stuck,omitempty"`
}

// String returns the trial as text for people.
func (t *Trial) String() string {
	until := t.Until.UTC().Format(time.RFC3339)
	switch {
	case t.Stuck != "":
		return fmt.Sprintf("snapshot %s was not confirmed, and can't be undone: %s", t.Snapshot, diag.ClipLine(t.Stuck, MaxText))
	case t.Overdue:
		return fmt.Sprintf("snapshot %s was not confirmed until %s, and is not undone yet", t.Snapshot, until)
	}
	return fmt.Sprintf("snapshot %s awaits confirmation until %s", t.Snapshot, until)
}

// WaysOut returns the commands by which an operator decides about the trial of the directory out.
func (t *Trial) WaysOut(out string) string {
	if t.Overdue && t.Stuck == "" {
		return fmt.Sprintf("xdspub cancel --out %s undoes the snapshot, as the next watch or render does", out)
	}
	return fmt.Sprintf("xdspub confirm --out %s %s keeps the snapshot, xdspub cancel --out %s undoes it", out, t.Snapshot, out)
}

// IsFault reports whether the snapshot of the trial should have been undone, because nobody has confirmed it in time,
// or because an operator has cancelled it.
func (t *Trial) IsFault() bool { return t != nil && (t.Overdue || t.Stuck != "") }

// Decisions are the decisions about an output directory, as views show them. Each may be nil.
type Decisions struct {
	Paused, Pinned *Shown
	Trial          *Trial
}

// Confirm is a request to keep the snapshot of the trial.
type Confirm struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason"`
	// Snapshot is the beginning of the id of the snapshot.
	Snapshot string `json:"snapshot"`
	// Waited is how long the request has waited for the watch.
	Waited time.Duration `json:"-"`
}

// Cancel is a request to undo the snapshot of the trial now.
type Cancel struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason"`
	// Snapshot is the beginning of the id of the snapshot; empty for any.
	Snapshot string `json:"snapshot,omitempty"`
	// Flags are as in RetryHeld.
	Flags map[string][]string `json:"flags,omitempty"`
}

// Extend is a request to set the end of the trial.
type Extend struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason"`
	// Snapshot is the beginning of the id of the snapshot; empty for any.
	Snapshot string `json:"snapshot,omitempty"`
	// For is the time to the new end, in seconds from now.
	For float64 `json:"for_seconds"`
	// Waited is how long the request has waited for the watch.
	Waited time.Duration `json:"-"`
}
