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

// Dates returns the findings about the dates of the certificates in a Snapshot: certificates that are out of date, and
// certificates that expire soon.
func (o Rules) Dates(ctx context.Context, s *xds.Snapshot) diag.List {
	by := o.rules(&Result{})
	by.Incomplete, by.Now = xds.Types, time.Now()
	dates := slices.DeleteFunc(slices.Clone(rules.All), func(r *validate.Rule) bool { return r.Code != ruleOfDates })
	return validate.Run(ctx, s, dates, by)
}
