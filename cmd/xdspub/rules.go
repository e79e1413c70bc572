package main

import (
	"cmp"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/load"
	"xdspub/pipeline"
	"xdspub/render"
	"xdspub/validate"
)

// ruleCodes are the validation rules, which can be disabled.
func ruleCodes() []diag.Code {
	var codes []diag.Code
	for _, r := range validate.Rules {
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc})
	}
	return codes
}

// allCodes is every code that a finding can have, sorted, each once: a rule may
// share its code with the loader, which finds the same fault earlier.
func allCodes() []diag.Code {
	codes := slices.Concat(ruleCodes(), load.Codes, render.Codes, pipeline.Codes)
	slices.SortStableFunc(codes, func(a, b diag.Code) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(codes, func(a, b diag.Code) bool { return a.Name == b.Name })
}

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:  "rules",
		Usage: "list every rule",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("rules wants no arguments: see xdspub explain")
			}
			w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
			for _, code := range allCodes() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", code.Name, code.Severity, code.Summary())
			}
			return w.Flush()
		},
	}
}

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say what a rule means and why",
		ArgsUsage: "RULE",
		Action: func(c *cli.Context) error {
			name, err := oneArgument(c, "RULE")
			if err != nil {
				return err
			}
			for _, code := range allCodes() {
				if code.Name == name {
					_, err := fmt.Fprintf(c.App.Writer, "%s (%s)\n\n%s\n", code.Name, code.Severity, code.Doc)
					return err
				}
			}
			return usagef("there is no rule %q: see xdspub rules", name)
		},
	}
}
