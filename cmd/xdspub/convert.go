package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/cmd/settings"
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
		Flags:  options(settings.Convert()),
		Action: action(convertAction),
	}
}

func convertAction(c *call) error {
	name, err := oneArgument(c, "FILE")
	if err != nil {
		return err
	}
	to := c.To.Value
	if to == "" {
		return usagef("--to is required: see %s", helpFor(c.Command.Name))
	}
	if err := c.To.Check(); err != nil {
		return err
	}
	format := render.FormatNamed(to)
	if err := stdinFormatUsed(c); err != nil {
		return err
	}
	of, err := c.withTypes()
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
	in.Envoy = in.Envoy.With(of.Types.Registry)
	response, result := load.Response(in)
	checked := &check.Result{Line: result.Line}
	checked.Add(result.Diagnostics)
	var data []byte
	if response != nil {
		var list diag.List
		data, list = format.Convert(of.Types.Registry, response, result.Resources())
		checked.Add(list)
	}
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	return writeTo(c.App.Writer, c.Output.Value, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
