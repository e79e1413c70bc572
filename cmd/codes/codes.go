// Package codes lists the codes of the findings of all stages.
package codes

import (
	"cmp"
	"slices"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/doctor"
	"xdspub/envoy/trial"
	"xdspub/render/confirm"
	"xdspub/render/planner"
	"xdspub/setup/bootstrap"
	"xdspub/setup/importer"
	"xdspub/xds/clients"
)

// Rules returns the codes that a user can disable.
func Rules() []diag.Code { return slices.Concat(check.RuleCodes(), planner.RuleCodes()) }

// Changes returns the codes in Rules that are about a change of the published resources.
func Changes() []diag.Code { return planner.RuleCodes() }

// All returns the codes of all stages, sorted and without repetitions.
func All() []diag.Code {
	codes := slices.Concat(
		check.Codes(), planner.Codes(), diag.InFamily("publishing", slices.Concat(confirm.Codes, clients.Codes)),
		diag.InFamily("following", slices.Concat(bootstrap.Codes, trial.Codes, importer.Codes)), doctor.Codes(),
	)
	slices.SortStableFunc(codes, func(a, b diag.Code) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(codes, func(a, b diag.Code) bool { return a.Name == b.Name })
}
