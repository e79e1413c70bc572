package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/check/scope"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/observe/graph"
	"xdspub/watch/status"
	"xdspub/xds"
)

func graphCommand() *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Usage:     "draw listeners, routes, clusters, endpoints and secrets, and their references",
		ArgsUsage: "[SRC]",
		Description: `Draws a source tree, or with --out what is published. References to missing resources and resources
with an error are red. --changed-since marks what a change touches.

An invalid tree is drawn as far as it can be read. Findings go to standard error.

Examples:
  xdspub graph config/ > graph.svg
  xdspub graph --changed-since main --format mermaid config/
  xdspub graph --focus CDS/web --format dot config/ | dot -Tpng -o web.png
  xdspub graph --out /var/lib/xds > published.svg

Exit status: 0 drawn, and the tree has no errors; 1 drawn, and the tree has errors; 2 wrong usage;
3 could not run.`,
		Flags:  options(settings.Graph()),
		Action: action(graphAction),
	}
}

// mostDrawn is the largest number of nodes without --all.
const mostDrawn = 300

func graphAction(c *call) error {
	if err := c.GraphFormat.Check(); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	d, err := drawnFrom(ctx, c)
	if err != nil {
		return err
	}
	g, err := graph.New(ctx, d.snapshot, d.options)
	if err != nil {
		return err
	}
	if c.Focus.Given() {
		n, err := g.Find(c.Focus.Value)
		if err != nil {
			return c.Focus.Invalid(c.Focus.Value, err.Error())
		}
		g = g.Focus(n, 0)
	}
	if err := writeGraph(c.App.Writer, g, c.GraphFormat.Value, c.All.Value); err != nil {
		return err
	}
	if d.refused {
		return &exit{status: exitRefused}
	}
	return nil
}

// drawn is what a graph shows.
type drawn struct {
	snapshot *xds.Snapshot
	options  graph.Options
	refused  bool // the source tree is invalid
}

// drawnFrom checks the source tree, or reads the output directory, and prints the findings.
func drawnFrom(ctx context.Context, c *call) (drawn, error) {
	switch out := c.Out.Value; {
	case c.NArg() == 1 && out != "":
		return drawn{}, usagef("a graph is of SRC or of --out DIR: leave one of them out")
	case out != "" && c.NArg() == 0:
		return drawnFromOutput(c, out)
	case c.NArg() != 1:
		return drawn{}, usagef("graph needs one SRC, or --out DIR: see %s", helpFor(c.Command.Name))
	case c.ChangedSince.Given() && c.ChangedSince.Value == "": // as --changed-since "$UNSET" in a shell
		return drawn{}, usagef("--changed-since is empty")
	}
	source := c.Args().First()
	v, o, err := optionsOfClient(c, source)
	if err != nil {
		return drawn{}, err
	}
	end := showProgress(c, "checking "+source)
	checked, err := check.Once(ctx, o)
	end()
	if err != nil {
		return drawn{}, err
	}
	d := drawn{snapshot: checked.Snapshot, refused: checked.Invalid(v.WarningsAsErrors.Value)}
	d.options.Findings = append(diag.List{}, checked.Diagnostics...)
	if rev := c.ChangedSince.Value; rev != "" {
		before, err := scope.At(ctx, o, rev)
		if err != nil {
			return drawn{}, fmt.Errorf("--changed-since %s: %w", rev, err)
		}
		d.options.Before = before.Snapshot
	}
	printFindings(c, checked, d.refused)
	return d, nil
}

// drawnFromOutput reads an output directory.
func drawnFromOutput(c *call, out string) (drawn, error) {
	for _, is := range []settings.Origin{c.Param.Origin, c.ClientTarget.Origin, c.ChangedSince.Origin} {
		if is.OnlyOnLine() {
			return drawn{}, usagef("--%s is for SRC, a source tree, and only --out is given", is.Name())
		}
	}
	v, err := c.withTypes()
	if err != nil {
		return drawn{}, err
	}
	s, err := status.Snapshot(status.Options{Out: out, Registry: v.Types.Registry})
	return drawn{snapshot: s}, err
}

// writeGraph writes a graph in a format. Without all, it writes as many nodes as a reader can survey, and as Mermaid
// draws.
func writeGraph(w io.Writer, g *graph.Graph, format string, all bool) error {
	if format == "mermaid" {
		return writeMermaid(w, g, all)
	}
	if !all {
		g = g.Limit(graph.Limits{Nodes: mostDrawn})
	}
	if format == "dot" {
		return g.WriteDOT(w)
	}
	return g.Layout().WriteSVG(w, graph.SVGOptions{})
}

func writeMermaid(w io.Writer, g *graph.Graph, all bool) error {
	for most := mostDrawn; ; most /= 2 {
		of := g
		if !all {
			of = g.Limit(graph.Limits{Nodes: most, Edges: graph.MermaidEdges})
		}
		var b bytes.Buffer
		if err := of.WriteMermaid(&b); err != nil {
			return err
		}
		if all || most < 2 || b.Len() <= graph.MermaidSize {
			_, err := w.Write(b.Bytes())
			return err
		}
	}
}
