package validate

import (
	"slices"

	"xdspub/diag"
)

// lists reports whether Options list the findings of a check. Options for the sub-code win over options for
// the rule. check is empty for a rule without Checks.
func (o Options) lists(r *Rule, check CheckName) bool {
	if check != "" && len(o.Disable)+len(o.Enable) > 0 {
		switch sub := diag.SubCode(r.Code, string(check)); {
		case slices.Contains(o.Disable, sub):
			return false
		case slices.Contains(o.Enable, sub):
			return true
		}
	}
	return !slices.Contains(o.Disable, r.Code) && (!r.OptIn || slices.Contains(o.Enable, r.Code))
}

// runs reports whether the rule applies to the Snapshot, and Options list findings of at least one of its checks.
func (o Options) runs(r *Rule) bool {
	listed := func(c diag.Check) bool { return o.lists(r, CheckName(c.Name)) }
	return r.OfVariants == o.Variants && r.isFor(o.profiles()) && (slices.ContainsFunc(r.Checks, listed) || r.Checks == nil && o.lists(r, ""))
}

// leftIn returns the rules that run.
func (o Options) leftIn(rules []*Rule) []*Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return !o.runs(r) })
}

// Listed returns the codes of the rules that run, and the sub-codes of the checks whose findings are listed.
func (o Options) Listed(rules []*Rule) (codes []string) {
	for _, r := range o.leftIn(rules) {
		codes = append(codes, r.Code)
		for _, c := range r.Checks {
			if o.lists(r, CheckName(c.Name)) {
				codes = append(codes, diag.SubCode(r.Code, c.Name))
			}
		}
	}
	return codes
}
