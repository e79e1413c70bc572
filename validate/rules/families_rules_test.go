package rules

import (
	"slices"
	"testing"

	"xdspub/validate"
	"xdspub/validate/rules/address"
	"xdspub/validate/rules/bootstrap"
	"xdspub/validate/rules/cluster"
	"xdspub/validate/rules/extension"
	"xdspub/validate/rules/field"
	"xdspub/validate/rules/filter"
	"xdspub/validate/rules/grpc"
	"xdspub/validate/rules/listener"
	"xdspub/validate/rules/matcher"
	"xdspub/validate/rules/reference"
	"xdspub/validate/rules/route"
	"xdspub/validate/rules/syntax"
	"xdspub/validate/rules/telemetry"
	"xdspub/validate/rules/tls"
	"xdspub/validate/rules/variant"
)

// TestRulesOfFamilies: All has exactly the rules of the families.
func TestRulesOfFamilies(t *testing.T) {
	families := map[string][]*validate.Rule{
		"address": address.Rules, "bootstrap": bootstrap.Rules, "cluster": cluster.Rules, "extension": extension.Rules,
		"field": field.Rules, "filter": filter.Rules, "grpc": grpc.Rules, "listener": listener.Rules, "matcher": matcher.Rules,
		"reference": reference.Rules, "route": route.Rules, "syntax": syntax.Rules, "telemetry": telemetry.Rules,
		"tls": tls.Rules, "variant": variant.Rules,
	}
	for _, r := range All {
		list := families[r.Family]
		i := slices.Index(list, r)
		if i < 0 {
			t.Errorf("rule %s runs, and the family %q has another value of it", r.Code, r.Family)
			continue
		}
		families[r.Family] = slices.Delete(slices.Clone(list), i, i+1)
	}
	for family, left := range families {
		for _, r := range left {
			t.Errorf("rule %s of the family %s does not run", r.Code, family)
		}
	}
}
