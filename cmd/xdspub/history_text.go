package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"xdspub/diag"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/xds"
)

// entryJSON is an entry of the history as JSON.
type entryJSON struct {
	ID        string           `json:"id"`
	Time      *time.Time       `json:"time"` // null if the entry is damaged
	Snapshot  string           `json:"snapshot"`
	Revision  string           `json:"revision"`
	Revisions []string         `json:"later_revisions,omitempty"`
	Dirty     bool             `json:"dirty"`
	Author    string           `json:"author"`
	Subject   string           `json:"subject"`
	Outcome   history.Outcome  `json:"outcome"`
	Since     *time.Time       `json:"outcome_since,omitempty"`
	DecidedBy string           `json:"outcome_by,omitempty"`
	Until     *time.Time       `json:"confirm_until,omitempty"` // of the snapshot that awaits confirmation
	Command   string           `json:"command"`
	By        string           `json:"by"`
	Reason    string           `json:"reason,omitempty"`
	Of        string           `json:"of,omitempty"`
	Part      *publish.Part    `json:"part,omitempty"`
	Resources map[string]int   `json:"resources"`
	Changes   *history.Changes `json:"changes"` // null for the first entry
	Format    string           `json:"format,omitempty"`
	EnvoyPath string           `json:"envoy_path,omitempty"`
	Fault     string           `json:"fault,omitempty"`
}

// entriesOf returns entries as JSON.
func entriesOf(items []history.Item, tried tried) []entryJSON {
	list := make([]entryJSON, len(items)) // never null
	for n, i := range items {
		list[n] = entryOf(i, tried)
	}
	return list
}

func entryOf(i history.Item, tried tried) entryJSON {
	e := entryJSON{
		ID: i.ID, Snapshot: i.Snapshot, Revision: i.Revision, Revisions: i.Notes.Revisions, Dirty: i.Dirty(), Author: i.Author, Subject: i.Subject,
		Outcome: i.Outcome(), Command: i.Command, By: i.By, Reason: i.Reason, Of: i.Of, Part: i.Part, Resources: i.Resources, Changes: i.Changes,
		Format: i.Format, EnvoyPath: i.EnvoyPath, DecidedBy: i.Notes.By,
	}
	if tried.id == i.ID && tried.trial != nil {
		e.Until = &tried.trial.Until
	}
	if !i.Time.IsZero() {
		e.Time = &i.Time
	}
	if !i.Notes.Since.IsZero() {
		e.Since = &i.Notes.Since
	}
	if e.Resources == nil {
		e.Resources = make(map[string]int)
	}
	if i.Fault != nil {
		e.Fault = i.Fault.Error()
	}
	return e
}

// writeEntries prints entries as a table.
func writeEntries(w io.Writer, items []history.Item, tried tried) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "the history has no entry")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tTIME\tSNAPSHOT\tOUTCOME\tCHANGES\tBY\tCOMMIT")
	for _, i := range items {
		if i.Time.IsZero() {
			fmt.Fprintf(t, "%s\tdamaged\n", i.ID)
			continue
		}
		outcome := string(i.Outcome()) + tried.until(i.ID)
		if i.Part != nil {
			outcome += ", in part"
		}
		if i.Fault != nil {
			outcome += ", damaged"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Time.Local().Format(timeFormat), diag.Clip(i.Snapshot, 20), outcome,
			changesText(i), diag.Clip(i.Command+" "+i.By, 40), commitText(i, 60))
	}
	return t.Flush()
}

// changesText returns the numbers of added, changed and removed resources.
func changesText(i history.Item) string {
	if c := i.Changes; c != nil {
		return fmt.Sprintf("+%d ~%d -%d", c.Added, c.Changed, c.Removed)
	}
	n := 0
	for _, of := range i.Resources {
		n += of
	}
	return fmt.Sprintf("+%d", n)
}

// commitText returns the beginning of the commit, the author and the subject.
func commitText(i history.Item, most int) string {
	if i.Revision == "" {
		return ""
	}
	commit, _, _ := strings.Cut(i.Revision, "+")
	text := commit[:min(len(commit), 10)]
	if i.Dirty() {
		text += "+dirty"
	}
	if i.Author+i.Subject != "" {
		text += " " + i.Author + ": " + i.Subject
	}
	if n := len(i.Notes.Revisions); n > 0 {
		text += fmt.Sprintf(", later %.10s", i.Notes.Revisions[n-1])
	}
	return diag.Clip(text, most)
}

// writeEntry prints all about an entry.
func writeEntry(w io.Writer, i history.Item, tried tried) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(t, "%s:\t%s\n", name, diag.Clip(text, 2_000))
		}
	}
	line("id", i.ID)
	if !i.Time.IsZero() {
		line("time", i.Time.Local().Format(timeFormat))
	}
	line("snapshot", i.Snapshot)
	outcome := string(i.Outcome())
	if !i.Notes.Since.IsZero() {
		outcome += " since " + i.Notes.Since.Local().Format(timeFormat)
	}
	if i.Notes.By != "" {
		outcome += ", by " + i.Notes.By
	}
	outcome += tried.until(i.ID)
	line("outcome", outcome)
	line("command", i.Command)
	line("by", i.By)
	line("reason", i.Reason)
	line("of", i.Of)
	if i.Part != nil {
		line("part", i.Part.String())
	}
	line("revision", i.Revision)
	line("later revisions", strings.Join(i.Notes.Revisions, ", "))
	line("author", i.Author)
	line("subject", i.Subject)
	line("format", i.Format)
	line("envoy path", i.EnvoyPath)
	var counts []string
	for _, of := range xds.Types {
		if n := i.Resources[of.API]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, of.API))
		}
	}
	line("resources", strings.Join(counts, ", "))
	c := cmp.Or(i.Changes, &history.Changes{})
	for _, of := range []struct {
		name  string
		n     int
		names []string
	}{{"added", c.Added, c.NamesAdded}, {"changed", c.Changed, c.NamesChanged}, {"removed", c.Removed, c.NamesRemoved}} {
		if of.n > 0 {
			text := fmt.Sprintf("%d: %s", of.n, strings.Join(of.names, ", "))
			if more := of.n - len(of.names); more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
			line(of.name, text)
		}
	}
	return t.Flush()
}
