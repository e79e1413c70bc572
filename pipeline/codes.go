package pipeline

import (
	"cmp"
	"slices"

	"xdspub/bootstrap"
	"xdspub/bootstrap/trial"
	"xdspub/check"
	"xdspub/clients"
	"xdspub/confirm"
	"xdspub/diag"
	"xdspub/importer"
	"xdspub/planner"
)

// RuleCodes returns the codes that can be disabled.
func RuleCodes() []diag.Code { return slices.Concat(check.RuleCodes(), planner.RuleCodes()) }

// ChangeCodes returns those of RuleCodes that are about a change of what is published.
func ChangeCodes() []diag.Code { return planner.RuleCodes() }

// Codes returns all codes that a finding can have, of every stage, sorted and each once.
func Codes() []diag.Code {
	codes := slices.Concat(
		check.Codes(), planner.Codes(), diag.InFamily("publishing", slices.Concat(confirm.Codes, clients.Codes)),
		diag.InFamily("following", slices.Concat(bootstrap.Codes, trial.Codes, importer.Codes)),
	)
	slices.SortStableFunc(codes, func(a, b diag.Code) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(codes, func(a, b diag.Code) bool { return a.Name == b.Name })
}
