package watch

import "xdspub/check"

// Tree returns the source tree that is published with these Options, one for each target, or the only
// ones: of those the first say how it is read. It is checked for all of them at once.
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
