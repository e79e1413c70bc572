package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"xdspub/check/codes"
	"xdspub/diag"
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
				return usagef("invalid --format %q: %s", format, oneOf(textOrJSON, format))
			}
		},
	}
}

func writeRules(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, code := range diag.WithSubCodes(codes.All()) {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", code.Name, code.Severity, code.Summary())
	}
	return tw.Flush()
}

// checkJSON is one of several things that a rule finds.
type checkJSON struct {
	Code    string `json:"code"`
	Summary string `json:"summary"`
}

// writeRulesJSON writes a list of objects. A summary is the first line of its doc.
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
		Action: func(c *cli.Context) error {
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
		},
	}
}

// explain writes what is known of a code, and its sub-codes.
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

// nearestRule is nearest for names of rules: only who writes a slash means a sub-code.
func nearestRule(names []string, word string) string {
	if !strings.Contains(word, "/") {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.Contains(name, "/") })
	}
	return nearest(names, word)
}

// unknownRule says that there is no rule of a name, and which may have been meant.
func unknownRule(name string) error {
	if meant := nearestRule(diag.Names(codes.All()), name); meant != "" {
		return usagef("unknown rule %q: did you mean %s?", name, meant)
	}
	return usagef("unknown rule %q: run xdspub rules for a list", name)
}
