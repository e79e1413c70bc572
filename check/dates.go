package check

import (
	"context"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// Newer returns the findings about fields and values in a Snapshot that are newer than the version of Rules.Envoy.
func (o Rules) Newer(ctx context.Context, s *xds.Snapshot) diag.List {
	return o.only(ctx, s, ruleOfVersions)
}

// Dates returns the findings about the dates of the certificates in a Snapshot: certificates that are out of date, and
// certificates that expire soon.
func (o Rules) Dates(ctx context.Context, s *xds.Snapshot) diag.List {
	return o.only(ctx, s, ruleOfDates)
}

// only returns the findings of one rule about a Snapshot that may lack resources.
func (o Rules) only(ctx context.Context, s *xds.Snapshot, code string) diag.List {
	by := o.rules(&Result{})
	by.Incomplete, by.Now = xds.Types, time.Now()
	one := slices.DeleteFunc(slices.Clone(rules.All), func(r *validate.Rule) bool { return r.Code != code })
	return validate.Run(ctx, s, one, by)
}
