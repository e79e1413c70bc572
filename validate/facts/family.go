package facts

import (
	"slices"

	"xdspub/validate"
)

// Family returns copies of rules with the settings of their family: Family, Idle, Profiles and Reaches. name is the
// name of the family and of its folder in validate/rules. A rule without Profiles gets profiles; nil profiles mean
// all clients.
func Family(name string, profiles []validate.Profile, given ...*validate.Rule) (rules []*validate.Rule) {
	for _, g := range given {
		r := *g
		r.Family, r.Idle = name, IdleTracer
		if r.Profiles == nil {
			r.Profiles = profiles
		}
		switch {
		case len(r.Profiles) == 0:
		case slices.Contains(r.Profiles, validate.GRPC):
			r.Reaches = ReachesGRPC
		default:
			r.Reaches = ReachesEnvoy
		}
		rules = append(rules, &r)
	}
	return rules
}
