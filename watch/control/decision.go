package control

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"xdspub/diag"
)

// MaxText bounds a text of a Decision, in bytes.
const MaxText = 1000

// Decision says who has decided, when and why.
type Decision struct {
	By     string    `json:"by"` // user@host
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// String returns a Decision as text for people: by alice@host since 2030-01-02T03:04:05Z: a reason.
func (d Decision) String() string { return d.text("") }

func (d Decision) text(until string) string {
	return fmt.Sprintf("by %s since %s%s: %s", diag.ClipLine(d.By, MaxText), d.Since.UTC().Format(time.RFC3339), until, diag.ClipLine(d.Reason, MaxText))
}

// Check returns an error if a text of the Decision is missing, too long or not text.
func (d Decision) Check() error {
	for _, of := range []struct{ name, text string }{{"name", d.By}, {"reason", d.Reason}} {
		switch {
		case strings.TrimSpace(of.text) == "":
			return fmt.Errorf("the %s is empty", of.name)
		case len(of.text) > MaxText:
			return fmt.Errorf("the %s has %d bytes, and %d are allowed", of.name, len(of.text), MaxText)
		case !utf8.ValidString(of.text):
			return fmt.Errorf("the %s is not UTF-8", of.name)
		}
	}
	return nil
}

// Shown is a decision as views show it.
type Shown struct {
	Decision
	// Until is when the decision ends by itself; zero if only an operator ends the decision.
	Until time.Time `json:"until,omitzero"`
	// Entry is the entry of the history that is pinned, published at EntryTime. Both are zero for a pause.
	Entry     string    `json:"entry,omitempty"`
	EntryTime time.Time `json:"entry_time,omitzero"`
	// Change is the id of the change that is approved; empty for other decisions.
	Change string `json:"change,omitempty"`
}

// String returns the decision as text, with its end, or with its entry of the history.
func (s Shown) String() string {
	switch {
	case s.Entry != "":
		return fmt.Sprintf("to entry %s of %s, %s", diag.ClipLine(s.Entry, MaxText), s.EntryTime.UTC().Format(time.RFC3339), s.Decision)
	case s.Change != "":
		return fmt.Sprintf("for change %s, %s", diag.ClipLine(s.Change, MaxText), s.Decision)
	case !s.Until.IsZero():
		return s.text(" until " + s.Until.UTC().Format(time.RFC3339))
	}
	return s.Decision.String()
}

// Guarded is a change that the guards have refused, and that an operator may approve.
type Guarded struct {
	Change string    `json:"change"` // the id
	Since  time.Time `json:"since"`
	What   string    `json:"what"` // such as: removes all listeners (2): "admin", "web"; all requests would fail
}

// String returns the change as text for people.
func (g Guarded) String() string {
	change, since := diag.ClipLine(g.Change, MaxText), g.Since.UTC().Format(time.RFC3339)
	return fmt.Sprintf("change %s waits for an approval since %s: it %s", change, since, diag.ClipLine(g.What, MaxText))
}
