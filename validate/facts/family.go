package facts

import (
	"slices"

	"xdspub/validate"
)

// Family returns the rules of a folder of validate/rules, whose name is also the folder's. profiles are
// those of the clients that a rule is about if the rule names none; nil means all clients. The rules
// that are given stay as they are.
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
