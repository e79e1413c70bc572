package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/importer"
	"xdspub/load"
)

func importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "make a source tree and a bootstrap of an Envoy's whole configuration",
		ArgsUsage: "FILE DIR",
		Description: `FILE is a bootstrap with static resources, in YAML, JSON or protobuf. Each listener, cluster and
secret becomes a file below DIR/config, with its comments in YAML. All else, and the clusters that
it needs, becomes DIR/bootstrap.yaml, or bootstrap.json. DIR has to be new or empty; where there is
an error, nothing is written. What is not as it was is a finding.

Next, publish DIR/config with --bootstrap DIR/bootstrap.yaml, and start Envoy with what the command
bootstrap envoy --from DIR/bootstrap.yaml prints.

Examples:
  xdspub import /etc/envoy/envoy.yaml edge
  xdspub import --root /etc/envoy envoy.yaml edge

Exit status: 0 written, 1 errors in FILE, 2 wrong usage, 3 could not run.`,
		Flags: []cli.Flag{
			&cli.PathFlag{Category: groupSource, Name: "root", Usage: "`DIR` that Envoy is started in, where relative paths begin (default: the current one)"},
			maxFindingsFlag(),
			colorFlag(),
		},
		Action: importAction,
	}
}

func importAction(c *cli.Context) error {
	if c.NArg() != 2 {
		given := diag.Count(c.NArg(), "argument") + " is given"
		if c.NArg() != 1 {
			given = diag.Count(c.NArg(), "argument") + " are given"
		}
		return usagef("import needs FILE and DIR, and %s: see %s", given, helpFor(c.Command.Name))
	}
	name, dir := c.Args().Get(0), c.Args().Get(1)
	if name == "" || dir == "" {
		return usagef("FILE or DIR is empty")
	}
	in, err := load.Open(name)
	if err != nil {
		return err
	}
	imported := importer.Static(in, importer.Options{Root: c.Path("root")})
	checked := &check.Result{Line: imported.Line}
	checked.Add(imported.Diagnostics)
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	err = importer.Write(dir, imported.Files, modeOf(name, ""))
	if used, ok := errors.AsType[*importer.NotEmptyError](err); ok {
		return &exit{exitUsage, used}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s in %s, %d in %s\n", name,
		diag.Count(imported.Resources, "resource"), filepath.Join(dir, importer.Tree), imported.Static, filepath.Join(dir, imported.Bootstrap))
	return err
}
