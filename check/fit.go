package check

import (
	"context"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// Fit judges the resources of s whose Keys other lacks. It returns s without the resources that have an error, and
// the errors. Findings of disabled and lowered rules (Lenient) do not count. Fit does not report a missing target
// of a reference.
func (o Rules) Fit(ctx context.Context, s, other *xds.Snapshot) (*xds.Snapshot, diag.List) {
	var judged []*xds.Resource
	for _, r := range s.All() {
		if other.Lookup(r.Type, r.Name) == nil {
			judged = append(judged, r)
		}
	}
	by := o.rules(&Result{})
	by.Incomplete, by.Disable = xds.Types, o.Lenient()
	var errors diag.List
	unfit := make(map[xds.Key]bool)
	for _, d := range validate.Run(ctx, xds.NewSnapshot(judged), rules.All, by) {
		if t := xds.TypeOfURL(d.Resource.Type); d.Severity == diag.Error && t != nil {
			errors = append(errors, d)
			unfit[xds.Key{Type: t, Name: d.Resource.Name}] = true
		}
	}
	if len(errors) == 0 {
		return s, nil
	}
	var fit []*xds.Resource
	for _, r := range s.All() {
		if !unfit[r.Key] {
			fit = append(fit, r)
		}
	}
	return xds.NewSnapshot(fit), errors
}
