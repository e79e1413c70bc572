package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/params"
)

func explainParamsCommand() *cli.Command {
	var source []cli.Flag
	for _, f := range sourceFlags() {
		if slices.Contains([]string{"config", "ignore", "allow-path", "param"}, f.Names()[0]) {
			source = append(source, f)
		}
	}
	return &cli.Command{
		Name:      "explain-params",
		Usage:     "show which variant of each resource a client gets, and why not the others",
		ArgsUsage: "SRC",
		Description: `A client gets, of each resource with variants, the one whose constraints match its dynamic
parameters; without --param, one that sends none.

Examples:
  xdspub explain-params --param env=prod --param region=eu config/

Exit status: 0 the client gets a variant of each resource, 1 it does not, or there are errors.`,
		Flags: append(source, maxFindingsFlag(), colorFlag(),
			&cli.StringFlag{Category: groupPrint, Name: "format", Value: "text", Usage: "print a table or a JSON object: `text|json`"}),
		Action: explainParamsAction,
	}
}

func explainParamsAction(c *cli.Context) error {
	path, err := oneArgument(c, "SRC")
	if err != nil {
		return err
	}
	format := c.String("format")
	if !slices.Contains(textOrJSON, format) {
		return usagef("invalid --format %q: %s", format, oneOf(textOrJSON, format))
	}
	_, o, err := settingsAndSource(c, path)
	if err != nil {
		return err
	}
	checked, err := check.Once(c.Context, o)
	if err != nil {
		return err
	}
	printFindings(c, checked, !checked.Accepted())
	of := explained{Parameters: o.Client, Resources: explainVariants(checked, o.Client)}
	return printReport(c, format, of, checked.Accepted(), writeExplained)
}

// explained is what a client gets of the resources with variants.
type explained struct {
	Parameters params.Parameters   `json:"parameters"`
	Resources  []explainedVariants `json:"resources"`
}

type explainedVariants struct {
	Resource diag.Resource      `json:"resource"`
	Variants []explainedVariant `json:"variants"`
	key      xds.Key
}

type explainedVariant struct {
	File        string `json:"file"`
	Line        int    `json:"line"`
	Constraints string `json:"constraints"`
	Matches     bool   `json:"matches"`
	// Because is what the client says of the keys of the constraints.
	Because string `json:"because"`
}

func explainVariants(checked *check.Result, client params.Parameters) []explainedVariants {
	list := []explainedVariants{}
	for _, k := range checked.Variants.Keys() {
		e := explainedVariants{Resource: diag.Resource{Type: k.Type.URL(), Name: k.Name}, key: k}
		for _, r := range checked.Variants.Variants(k) {
			at := r.Origin.Range("").Position
			e.Variants = append(e.Variants, explainedVariant{at.File, at.Line, r.For.String(), r.For.Matches(client), because(r.For, client)})
		}
		list = append(list, e)
	}
	return list
}

// because says what a client sends of the keys that constraints name.
func because(c params.Constraints, client params.Parameters) string {
	var says []string
	for _, key := range c.Keys() {
		if value, sent := client[key]; sent {
			says = append(says, params.Parameters{key: value}.String())
		} else {
			says = append(says, "no "+key)
		}
	}
	return strings.Join(says, ", ")
}

func writeExplained(w io.Writer, e explained, _ time.Time) error {
	if len(e.Resources) == 0 {
		_, err := fmt.Fprintln(w, "no resource has variants: each client gets all of them")
		return err
	}
	fmt.Fprintf(w, "a client with %s:\n", e.Parameters)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range e.Resources {
		fmt.Fprintf(tw, "%s\n", r.key)
		for _, v := range r.Variants {
			gets := "no"
			if v.Matches {
				gets = "yes"
			}
			fmt.Fprintf(tw, "  %s:%d\t%s\tfor %s\tit sends %s\n", v.File, v.Line, gets, v.Constraints, v.Because)
		}
	}
	return tw.Flush()
}
