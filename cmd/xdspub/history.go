package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/render/history"
	"xdspub/watch/control"
	"xdspub/watch/operator"
)

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show what was published, and write it as a source tree again",
		ArgsUsage: "[show|export ID DIR]",
		Description: `Lists the published snapshots, the latest first. show prints all about one of them, and export
writes its resources as a source tree into DIR, which must be missing or empty. The tree may hold
secrets: only you can read it. The beginning of an ID suffices, at least 4 digits.

Examples:
  xdspub history --out /var/lib/xds
  xdspub history --out /var/lib/xds --at "yesterday 14:00"
  xdspub history --out /var/lib/xds show 3fa94c1b
  xdspub history --out /var/lib/xds export 3fa94c1b restored/

Exit status: 0 success, 1 an entry is damaged, 2 wrong usage, or no such entry; 3 could not run.`,
		Flags:  options(settings.History()),
		Action: action(historyAction),
	}
}

func historyAction(c *call) error {
	if err := c.PrintFormat.Check(); err != nil {
		return err
	}
	if c.Out.Value == "" {
		return usagef("--out is required: see %s", helpFor(c.Command.Name))
	}
	h, err := openHistory(c.Out.Value)
	if err != nil {
		return err
	}
	defer h.Close()
	tried, err := trialIn(c.Out.Value, h)
	if err != nil {
		return err
	}
	switch args := c.Args().Slice(); {
	case len(args) == 0:
		return listHistory(c, h, tried, time.Now())
	case c.Since.Given() || c.At.Given():
		return usagef("--since and --at are for the list: leave out %q, or the option", args[0])
	case args[0] == "show" && len(args) == 2:
		return showEntry(c, h, tried, args[1])
	case args[0] == "export" && len(args) == 3:
		return exportEntry(c, h, args[1], args[2])
	}
	return usagef("write history, history show ID, or history export ID DIR: see %s", helpFor(c.Command.Name))
}

// openHistory reads the history of a directory into which something was published.
func openHistory(out string) (*history.History, error) {
	if _, err := os.Stat(filepath.Join(out, ".xdspub")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("nothing was published into %s: name the output directory of render, watch or serve, and with targets that of one target", out)
	}
	return history.Read(out)
}

// tried is the entry of the snapshot that awaits confirmation; the zero value for none.
type tried struct {
	id    string
	trial *control.Trial
}

// trialIn returns the entry of the snapshot that awaits confirmation in the directory out.
func trialIn(out string, h *history.History) (tried, error) {
	is, err := operator.ShownIn(out)
	if err != nil || is.Trial == nil {
		return tried{}, err
	}
	for _, i := range h.Items() {
		if i.Snapshot == is.Trial.Snapshot && i.Outcome().WentOut() {
			return tried{i.ID, is.Trial}, nil
		}
	}
	return tried{}, nil
}

// until returns text about the wait for a confirmation; empty if the entry does not await any.
func (t tried) until(id string) string {
	switch {
	case t.trial == nil || t.id != id:
		return ""
	case t.trial.IsFault():
		return ", not confirmed until " + t.trial.Until.Local().Format(timeFormat)
	}
	return ", awaits confirmation until " + t.trial.Until.Local().Format(timeFormat)
}

// listHistory prints the entries of --since, or the entry of --at.
func listHistory(c *call, h *history.History, tried tried, now time.Time) error {
	items := h.Items()
	switch {
	case c.Since.Given() && c.At.Given():
		return usagef("--since and --at exclude each other: leave out one of them")
	case c.At.Given():
		at, err := timeOf(c.At, now)
		if err != nil {
			return err
		}
		item, err := h.At(at)
		if err != nil {
			return &exit{exitUsage, err}
		}
		items = []history.Item{item}
		if c.PrintFormat.Value != "json" {
			fmt.Fprintf(c.App.Writer, "at %s:\n", at.Format(timeFormat))
		}
	case c.Since.Given():
		since, err := timeOf(c.Since, now)
		if err != nil {
			return err
		}
		items = slices.DeleteFunc(items, func(i history.Item) bool { return i.Time.Before(since) && !i.Time.IsZero() })
	}
	var err error
	if c.PrintFormat.Value == "json" {
		err = writeJSON(c.App.Writer, entriesOf(items, tried))
	} else {
		err = writeEntries(c.App.Writer, items, tried)
	}
	if err != nil {
		return err
	}
	return sayFaults(c, h)
}

// sayFaults prints the faults of the history. With faults, sayFaults returns an exit with exitRefused.
func sayFaults(c *call, h *history.History) error {
	faults := h.Faults()
	for _, fault := range faults {
		fmt.Fprintf(c.App.ErrWriter, "xdspub: warning: %s\n", printable(fault))
	}
	if len(faults) > 0 {
		return &exit{status: exitRefused}
	}
	return nil
}

// entryNamed returns the entry of an id, or of its beginning.
func entryNamed(h *history.History, id string) (history.Item, error) {
	item, err := h.Find(id)
	if err != nil {
		err = &exit{exitUsage, err}
	}
	return item, err
}

// showEntry prints all about an entry.
func showEntry(c *call, h *history.History, tried tried, id string) error {
	item, err := entryNamed(h, id)
	if err != nil {
		return err
	}
	if c.PrintFormat.Value == "json" {
		err = writeJSON(c.App.Writer, entryOf(item, tried))
	} else {
		err = writeEntry(c.App.Writer, item, tried)
	}
	if err == nil && item.Fault != nil {
		fmt.Fprintf(c.App.ErrWriter, "xdspub: warning: %s\n", printable(item.Fault))
		err = &exit{status: exitRefused}
	}
	return err
}

// exportEntry writes an entry as a source tree.
func exportEntry(c *call, h *history.History, id, dir string) error {
	item, err := entryNamed(h, id)
	if err != nil {
		return err
	}
	v, err := c.withTypes()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	files, err := h.Export(ctx, item.ID, dir, v.Types.Registry)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "wrote the snapshot %s of %s into %s: %s\n", item.Snapshot, item.Time.Local().Format(timeFormat), dir, diag.Count(files, "file"))
	return err
}
