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
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

func explainParamsCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain-params",
		Usage:     "show which variant of each resource a client gets and why, or compare two clients",
		ArgsUsage: "SRC",
		Description: `The constraints of a variant select clients by their dynamic parameters. Without --param and --target,
the client sends no parameters. --against and --against-target name a second client: the command then
shows only the resources of which the two clients get different variants.

Examples:
  xdspub explain-params --param env=prod --param region=eu config/
  xdspub explain-params --param env=prod --against env=test config/
  xdspub explain-params --target prod-eu --against-target prod-us config/

Exit status: 0 the client gets a variant of each resource, 1 it does not, or there are errors. With
two clients: 0 no errors, whether they differ or not, 1 errors.`,
		Flags:  options(settings.ExplainParams()),
		Action: action(explainParamsAction),
	}
}

func explainParamsAction(c *call) error {
	path, err := oneArgument(c, "SRC")
	if err != nil {
		return err
	}
	if err := c.PrintFormat.Check(); err != nil {
		return err
	}
	v, o, err := settingsAndSource(c, path)
	if err != nil {
		return err
	}
	client, err := clientNamed(v, v.Param, v.ClientTarget)
	if err != nil {
		return err
	}
	against, err := clientNamed(v, v.Against, v.AgainstTarget)
	if err != nil {
		return err
	}
	isPair := c.Against.Given() || c.AgainstTarget.Given()
	if o.Client = &client; isPair {
		o.Client = nil
		o.Targets = []check.Target{{Name: "first", Client: client, Profiles: o.Profiles}, {Name: "second", Client: against, Profiles: o.Profiles}}
		o.Disable = append(slices.Clone(o.Disable), "variant-gap") // the comparison shows what a client lacks
	}
	checked, err := check.Once(c.Context, o)
	if err != nil {
		return err
	}
	nameClients(checked)
	printFindings(c, checked, !checked.Accepted())
	if isPair {
		return printReport(c, comparison(checked, client, against), checked.Accepted(), writeCompared)
	}
	of := explained{Client: client, Resources: explainVariants(checked, client)}
	return printReport(c, of, checked.Accepted(), writeExplained)
}

// nameClients sets the findings of a check with targets to the findings of its targets, without duplicates. If
// a target lacks a finding, the message names a client that the finding concerns.
func nameClients(checked *check.Result) {
	if len(checked.Targets) == 0 {
		return
	}
	var found diag.Owned
	for _, t := range checked.Targets {
		found.Add(t.Diagnostics)
	}
	var list diag.List
	for _, f := range found.List() {
		if len(f.Owners) < len(checked.Targets) {
			f.Message += "; this concerns a client with " + checked.Targets[f.Owners[0]].Client.String()
		}
		list = append(list, f.Diagnostic)
	}
	checked.Keep(list)
}

// clientNamed returns the client of the target that an option names, or else the client with the parameters of
// another option.
func clientNamed(v *call, param settings.Value[[]string], target settings.Value[string]) (variants.Client, error) {
	switch {
	case !target.Given():
		return clientOf(param)
	case param.Given():
		return variants.Client{}, usagef("--%s and --%s both say who the client is: give only one of them", param.Name(), target.Name())
	}
	t, err := targetNamed(v, target.Origin, target.Value)
	return t.Client, err
}

// explained says which variants a client gets, for all resources with variants.
type explained struct {
	variants.Client
	Resources []explainedVariants `json:"resources"`
}

type explainedVariants struct {
	Resource diag.Resource      `json:"resource"`
	Variants []explainedVariant `json:"variants"`
	key      xds.Key
}

type explainedVariant struct {
	variantPlace
	Matches bool `json:"matches"`
	// Because has the parameters of the client for the keys of the constraints.
	Because string `json:"because"`
}

// variantPlace is a variant with its place.
type variantPlace struct {
	File        string `json:"file"`
	Line        int    `json:"line"`
	Constraints string `json:"constraints"`
}

func placeOfVariant(r *xds.Resource) variantPlace {
	at := r.Origin.Range("").Position
	return variantPlace{at.File, at.Line, r.For.String()}
}

func explainVariants(checked *check.Result, client variants.Client) []explainedVariants {
	list := []explainedVariants{}
	for _, k := range checked.Variants.Keys() {
		e := explainedVariants{Resource: diag.Resource{Type: k.Type.URL(), Name: k.Name}, key: k}
		for _, r := range checked.Variants.Variants(k) {
			e.Variants = append(e.Variants, explainedVariant{placeOfVariant(r), client.Matches(r), because(r.For, client.Of(k))})
		}
		list = append(list, e)
	}
	return list
}

// because returns the parameters that a client sends for the keys of the constraints, as text.
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
	fmt.Fprintf(w, "a client with %s:\n", e.Client)
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
