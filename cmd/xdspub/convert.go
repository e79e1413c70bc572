package main

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render"
	"xdspub/source/load"
)

func convertCommand() *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "write the resources of one file as a DiscoveryResponse in another format",
		ArgsUsage: "FILE|-",
		Description: `The file holds resources, or a DiscoveryResponse that Envoy or xdspub reads. Names that it
refers to are not checked: xdspub validate does that.

Examples:
  xdspub convert --to json clusters.yaml
  xdspub convert --to yaml --output cds.yaml /var/lib/xds/cds/cds.pb`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "format to write: `" + strings.Join(formatNames(), "|") + "` (required)"},
			descriptorSetFlag(),
			stdinFormatFlag(),
			&cli.StringFlag{Category: groupPrint, Name: "output", Value: "-", Usage: "write to `FILE` (- is standard output)"},
			maxFindingsFlag(),
			colorFlag(),
		},
		Action: convertAction,
	}
}

func convertAction(c *cli.Context) error {
	name, err := oneArgument(c, "FILE")
	if err != nil {
		return err
	}
	to := c.String("to")
	format := render.FormatNamed(to)
	switch {
	case to == "":
		return usagef("--to is required: see %s", helpFor(c.Command.Name))
	case format == nil:
		return usagef("invalid --to %q: %s", to, oneOf(formatNames(), to))
	}
	if err := stdinFormatUsed(c); err != nil {
		return err
	}
	own, err := readOwnTypes(values{c: c})
	if err != nil {
		return err
	}
	var in load.Input
	if name == "-" {
		in, err = standardInput(c)
	} else {
		in, err = load.Open(name)
	}
	if err != nil {
		return err
	}
	in.Envoy = in.Envoy.With(own.registry)
	response, result := load.Response(in)
	checked := &check.Result{Line: result.Line}
	checked.Add(result.Diagnostics)
	var data []byte
	if response != nil {
		var list diag.List
		data, list = format.Convert(own.registry, response, result.Resources())
		checked.Add(list)
	}
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	return writeTo(c.App.Writer, c.String("output"), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
