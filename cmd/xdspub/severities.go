package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/report"
)

func minSeverityFlag() cli.Flag {
	return &cli.StringFlag{
		Category: groupPrint, Name: "min-severity", EnvVars: env("min-severity"), Value: diag.Info.String(),
		Usage: "leave findings below `error|warning|info` out of all reports; the exit status and the counts stay",
		Action: func(_ *cli.Context, word string) error {
			var s diag.Severity
			if s.UnmarshalText([]byte(word)) != nil {
				return usagef("invalid --min-severity %q: %s", word, oneOf([]string{"error", "warning", "info"}, word))
			}
			return nil
		},
	}
}

// reportedOnly leaves out of the findings what --min-severity does not ask for.
func (t checkedTrees) reportedOnly(c *cli.Context) checkedTrees {
	var least diag.Severity
	if least.UnmarshalText([]byte(c.String("min-severity"))) != nil || least == diag.Info {
		return t
	}
	below := func(d diag.Diagnostic) bool { return d.Severity > least }
	few := *t.Result
	few.Diagnostics = slices.DeleteFunc(slices.Clone(t.Diagnostics), below)
	t.Result, t.trees = &few, slices.Clone(t.trees)
	for i, tree := range t.trees {
		t.trees[i].Findings = slices.DeleteFunc(slices.Clone(tree.Findings), below)
	}
	return t
}

// warningsThatRefuse says which warnings refuse trees: 2 warnings (ignored-file, weight-sum).
func warningsThatRefuse(trees []report.Tree) string {
	codes, n := make(map[string]bool), 0
	for _, t := range trees {
		for _, d := range t.Findings {
			if t.WarningsAsErrors && d.Severity == diag.Warning {
				codes[d.Code] = true
				n++
			}
		}
	}
	return fmt.Sprintf("%s (%s)", diag.Count(n, "warning"), diag.Few(slices.Sorted(maps.Keys(codes)), 5))
}
