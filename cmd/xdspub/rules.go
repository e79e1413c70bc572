package main

import (
	"encoding/json"
	"fmt"
	"io"
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
		Flags: []cli.Flag{
			&cli.StringFlag{Category: groupPrint, Name: "format", Value: "text", Usage: "print a line for each rule, or all that is said of them: `text|json`"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("rules takes no arguments: run xdspub explain RULE for one of them")
			}
			switch format := c.String("format"); format {
			case "text":
				return writeRules(c.App.Writer)
			case "json":
				return writeRulesJSON(c.App.Writer)
			default:
				return usagef("invalid --format %q: use text or json", format)
			}
		},
	}
}

func writeRules(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, code := range pipeline.Codes() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", code.Name, code.Severity, code.Summary())
	}
	return tw.Flush()
}

// writeRulesJSON writes a list of objects. A summary is the first line of its doc.
func writeRulesJSON(w io.Writer) error {
	type rule struct {
		Code     string        `json:"code"`
		Severity diag.Severity `json:"severity"`
		Summary  string        `json:"summary"`
		Doc      string        `json:"doc"`
	}
	var list []rule
	for _, code := range pipeline.Codes() {
		list = append(list, rule{code.Name, code.Severity, code.Summary(), code.Doc})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
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
	if meant := nearest(diag.Names(pipeline.Codes()), name); meant != "" {
		return usagef("unknown rule %q: did you mean %s?", name, meant)
	}
	return usagef("unknown rule %q: run xdspub rules for a list", name)
}
