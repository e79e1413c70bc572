package main

import (
	"fmt"
	"maps"
	"slices"

	"xdspub/diag"
	"xdspub/report"
)

// reportedOnly returns t without the findings below --min-severity.
func (t checkedTrees) reportedOnly(c *call) checkedTrees {
	var least diag.Severity
	if least.UnmarshalText([]byte(c.MinSeverity.Value)) != nil || least == diag.Info {
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

// warningsThatRefuse returns the number and the codes of the warnings that make trees invalid, as in 2 warnings
// (ignored-file, weight-sum).
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
