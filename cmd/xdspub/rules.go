package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/pipeline"
)

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:        "rules",
		Usage:       "list all rules with their severity",
		Description: "Options turn rules on and off: --enable RULE, --disable RULE.",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("rules takes no arguments: run xdspub explain RULE for one of them")
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
		Usage:     "explain a rule: what it finds, why, and what to write instead",
		ArgsUsage: "RULE",
		Description: `Examples:
  xdspub explain unresolved-reference`,
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
			return unknownRule(name)
		},
	}
}

// unknownRule says that there is no rule of a name, and which may have been meant.
func unknownRule(name string) error {
	if meant := nearest(codeNames(pipeline.Codes()), name); meant != "" {
		return usagef("unknown rule %q: did you mean %s?", name, meant)
	}
	return usagef("unknown rule %q: run xdspub rules for a list", name)
}

func codeNames(codes []diag.Code) (names []string) {
	for _, c := range codes {
		names = append(names, c.Name)
	}
	return names
}
