package watch

import "xdspub/check"

// Tree returns the source tree of all targets, or of the single Options without targets. The first Options
// decide how the tree is read. The tree is checked for all targets at once.
func Tree(all []Options) *check.Tree {
	of := all[0].Source
	var outs []string
	for _, o := range all {
		outs = append(outs, o.Out)
		if o.Target != "" {
			of.Targets = append(of.Targets, check.Target{Name: o.Target, Client: *o.Source.Client, Profiles: o.Source.Profiles})
		}
	}
	t := check.New(of)
	t.KeepApart(outs...)
	return t
}
