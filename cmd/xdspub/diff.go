package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/diff"
	"xdspub/watch/freeze"
	"xdspub/watch/operator"
	"xdspub/xds"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what a change does to a running Envoy, and the fields that differ",
		ArgsUsage: "[OLD] [SRC]",
		Description: `Compares SRC with OLD, another source tree; with --out, with what is published; with --from, with a
git revision; with --envoy-admin, with what a running Envoy has. --envoy-admin and --out together, without
SRC, compare the Envoy with the published files. OLD and SRC may also be xds://HOST:PORT or xds+unix:PATH,
a control plane, as the node of --node-id or --node-from sees it.

With --out, --from names an entry of xdspub history, or --at a time at which the entry was published. The
other side is then SRC, the entry of --to, or what is published.

diff says which listeners and filter chains drain, which clusters lose their connection pools, which requests
go elsewhere, which endpoints come and go, and which secrets rotate. A secret is shown by a fingerprint.

Examples:
  xdspub diff --out /var/lib/xds config/
  xdspub diff --from origin/main config/
  xdspub diff --from v1 --to v2 --format markdown config/
  xdspub diff old/ new/
  xdspub diff --out /var/lib/xds --at "yesterday 14:00"
  xdspub diff --out /var/lib/xds --from 3fa94c1b --to 9be1c5a0
  xdspub diff --envoy-admin http://127.0.0.1:9901 config/
  xdspub diff --node-id edge-1 xds://127.0.0.1:18000 config/

Exit status: 0 no difference, 1 a difference, 2 wrong usage, 3 could not run, or SRC has errors.`,
		Flags:  options(settings.Diff()),
		Action: action(diffAction),
	}
}

// mostShown is the largest number of effects of a kind, and of fields of a resource, that a terminal gets without
// --all.
const mostShown = 50

// defaultWidth is the width of lines without $COLUMNS.
const defaultWidth = 130

func diffAction(c *call) error {
	if err := c.DiffFormat.Check(); err != nil {
		return err
	}
	if c.SideBySide.Value && c.DiffFormat.Value != "text" {
		return usagef("--side-by-side is for text, and --format is %s: leave one of them out", c.DiffFormat.Value)
	}
	if err := checkSides(c); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	of, err := bothSides(ctx, c)
	if err != nil {
		return err
	}
	if err := of.write(c); err != nil {
		return err
	}
	if !of.Empty() {
		return &exit{status: exitRefused}
	}
	return nil
}

// difference is a Diff with the names of its sides.
type difference struct {
	From string `json:"from"`
	To   string `json:"to"`
	Same bool   `json:"same"`
	// NotCompared lists the types that a running Envoy does not show, or that a control plane sends by name alone.
	NotCompared []string `json:"not_compared"`
	// Frozen is the freeze in the settings of SRC that holds the change now; nil without one.
	Frozen *freeze.State `json:"frozen"`
	goesOn string        // during the freeze, as goOn returns it
	Counts diff.Counts   `json:"counts"`
	*diff.Diff

	hidden string // why the types of NotCompared are not compared
}

// between returns the difference between two sides.
func between(from, to string, was, is *xds.Snapshot, without []*xds.Type) difference {
	d := difference{From: from, To: to, Diff: diff.Compare(was, is), NotCompared: []string{}, hidden: "Envoy does not show"}
	for _, t := range without {
		d.NotCompared = append(d.NotCompared, t.API)
	}
	return d
}

// to returns d with the freeze in the settings of the new side.
func (d difference) to(is treeSide) difference {
	if d.Diff != nil && !d.Empty() {
		d.goesOn = goOn(is.settings.WhileRefused.Value)
		d.Frozen = is.settings.Freeze.Value.At(time.Now())
	}
	return d
}

// write prints the difference.
func (d difference) write(c *call) error {
	d.Same, d.Counts = d.Empty(), d.Diff.Counts()
	w := c.App.Writer
	if len(d.NotCompared) > 0 {
		fmt.Fprintf(c.App.ErrWriter, "not compared: %s, which %s\n", strings.Join(d.NotCompared, ", "), d.hidden)
	}
	frozen := ""
	if d.Frozen != nil {
		frozen = fmt.Sprintf("a freeze holds this change %s%s", d.Frozen, d.goesOn)
	}
	o := diff.TextOptions{Was: d.From, Is: d.To, Color: colored(c, w)}
	if isTerminal(w) && !c.All.Value {
		o.Most = mostShown
	}
	if c.SideBySide.Value {
		o.Width = defaultWidth
		if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
			o.Width = n
		}
	}
	switch c.DiffFormat.Value {
	case "json":
		return writeJSON(w, d)
	case "markdown":
		o.Note = frozen
		return d.WriteMarkdown(w, o)
	}
	if frozen != "" {
		fmt.Fprintln(c.App.ErrWriter, frozen)
	}
	return d.WriteText(w, o)
}

// bothSides reads both sides that the arguments and options of a call name, and compares them.
func bothSides(ctx context.Context, c *call) (difference, error) {
	out, admin, from, to := c.Out.Value != "", c.RunningEnvoy.Value != "", c.FromRevision.Value != "", c.ToRevision.Value != ""
	at := c.At.Given()
	switch {
	case c.FromRevision.Given() && !from || c.ToRevision.Given() && !to: // as --from "$UNSET" in a shell
		return difference{}, usagef("--from or --to is empty: name a git revision, or with --out an entry of the history")
	case to && !from && !at:
		return difference{}, usagef("--to needs --from REV")
	case at && !out:
		return difference{}, usagef("--at needs --out DIR: the history is in the output directory")
	case at && from:
		return difference{}, usagef("--at and --from exclude each other: leave out one of them")
	case out && (from || at) && !admin && (c.NArg() == 0 || c.NArg() == 1 && !to):
		return entries(ctx, c)
	}
	sides := c.NArg()
	for _, is := range []bool{out, admin, from} {
		if is {
			sides++
		}
	}
	if sides != 2 || admin && from || out && from {
		return difference{}, usagef("diff compares two sides: OLD and SRC, or SRC and one of --out, --from and --envoy-admin, or two entries of the history of --out: see %s", helpFor("diff"))
	}
	switch {
	case admin && out:
		return envoyAndOutput(ctx, c)
	case admin:
		return envoyAndTree(ctx, c)
	case out && operator.IsServer(c.Out.Value): // without files
		return entries(ctx, c)
	case out:
		return outputAndTree(ctx, c)
	case from:
		return revisions(ctx, c)
	}
	return trees(ctx, c)
}
