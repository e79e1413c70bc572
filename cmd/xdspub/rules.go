package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/codes"
	"xdspub/cmd/settings"
	"xdspub/diag"
)

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:        "rules",
		Usage:       "list all rules with their severity",
		Description: "Options turn rules on and off: --enable RULE, --disable RULE.",
		Flags:       options(settings.Rules()),
		Action: action(func(c *call) error {
			if c.NArg() > 0 {
				return usagef("rules takes no arguments: run xdspub explain RULE for a single rule")
			}
			if err := c.PrintFormat.Check(); err != nil {
				return err
			}
			if c.PrintFormat.Value == "json" {
				return writeRulesJSON(c.App.Writer)
			}
			return writeRules(c.App.Writer)
		}),
	}
}

func writeRules(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, code := range diag.WithSubCodes(codes.All()) {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", code.Name, code.Severity, code.Summary())
	}
	return tw.Flush()
}

// checkJSON is a check of a rule.
type checkJSON struct {
	Code    string `json:"code"`
	Summary string `json:"summary"`
}

// writeRulesJSON writes the rules as a list of objects. A summary is the first line of the doc.
func writeRulesJSON(w io.Writer) error {
	type rule struct {
		Code     string        `json:"code"`
		Family   string        `json:"family"`
		Severity diag.Severity `json:"severity"`
		Summary  string        `json:"summary"`
		Doc      string        `json:"doc"`
		Checks   []checkJSON   `json:"checks"`
		URL      string        `json:"url,omitempty"`
	}
	codes, err := documented()
	if err != nil {
		return err
	}
	var list []rule
	for _, code := range codes {
		checks := []checkJSON{}
		for _, c := range code.Checks {
			checks = append(checks, checkJSON{diag.SubCode(code.Name, c.Name), c.Summary})
		}
		list = append(list, rule{code.Name, code.Family, code.Severity, code.Summary(), code.Doc, checks, code.URL})
	}
	return writeJSON(w, list)
}

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "explain a rule: what it finds, why, and what to write instead",
		ArgsUsage: "RULE",
		Description: `Examples:
  xdspub explain unresolved-reference`,
		Action: action(func(c *call) error {
			name, err := oneArgument(c, "RULE")
			if err != nil {
				return err
			}
			for _, code := range diag.WithSubCodes(codes.All()) {
				if code.Name == name {
					return explain(c.App.Writer, code)
				}
			}
			return unknownRule(name)
		}),
	}
}

// explain writes the documentation of a code and of its sub-codes.
func explain(w io.Writer, code diag.Code) error {
	if _, err := fmt.Fprintf(w, "%s (%s)\n\n%s\n", code.Name, code.Severity, code.Doc); err != nil || len(code.Checks) == 0 {
		return err
	}
	fmt.Fprint(w, "\nEach of these has a code of its own, and can be turned off alone:\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, check := range code.Checks {
		fmt.Fprintf(tw, "  %s\t%s\n", diag.SubCode(code.Name, check.Name), check.Summary)
	}
	return tw.Flush()
}

// unknownRule returns an error for an unknown rule, with a suggestion.
func unknownRule(name string) error {
	if meant := settings.NearestRule(diag.Names(codes.All()), name); meant != "" {
		return usagef("unknown rule %q: did you mean %s?", name, meant)
	}
	return usagef("unknown rule %q: run xdspub rules for a list", name)
}
