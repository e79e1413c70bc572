package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"xdspub/pipeline"
)

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:  "rules",
		Usage: "list every rule",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("rules wants no arguments: see xdspub explain")
			}
			w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
			for _, code := range pipeline.Codes() {
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
			for _, code := range pipeline.Codes() {
				if code.Name == name {
					_, err := fmt.Fprintf(c.App.Writer, "%s (%s)\n\n%s\n", code.Name, code.Severity, code.Doc)
					return err
				}
			}
			return usagef("there is no rule %q: see xdspub rules", name)
		},
	}
}
