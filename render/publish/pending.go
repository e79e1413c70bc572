package publish

import (
	"fmt"
	"slices"
)

// anyGroup stands where the group of a secret is not looked at.
const anyGroup = -1

// Pending reduces p to its difference from the directory out: files whose bytes, kind or mode, or whose
// folder's mode, are not as planned, and removals of existing files. Pending drops empty steps. Pending
// changes nothing and needs no lock; a missing directory counts as empty. The error is not nil for a plan that
// can't be published, for example if a folder stands at a file's place.
//
// Publish starts with the same comparison.
func Pending(out string, p Plan, o Options) (Plan, error) {
	return reading(out, func(root folder) (Plan, error) {
		gid := anyGroup
		if root.File != nil || o.Group != "" {
			var err error
			if gid, err = lookupGroup(o.Group, root); err != nil {
				return Plan{}, err
			}
		}
		return pending(root, p, gid, nil, NewReader(out))
	})
}

// pending is Pending with the interrupted change: with a Confirmer, the files of that change move again even
// if they are published, because nobody saw Envoy's answer. pending does not read files that known has found
// published.
func pending(root folder, p Plan, gid int, interrupted *Intent, known *Reader) (Plan, error) {
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	// Backwards: if one version of a file is published, the earlier versions are not needed.
	var steps []Step
	asked := make(links)
	done, again := make(map[string]bool), make(map[string]bool)
	if p.Confirm != nil {
		again = interrupted.paths()
		for _, name := range p.Republish {
			again[name] = true
		}
	}
	for _, s := range slices.Backward(p.Steps) {
		left := Step{Name: s.Name}
		for _, f := range s.Write {
			ok, err := known.isOut(root, f, gid, asked)
			if err != nil {
				return Plan{}, fmt.Errorf("publish %s: %w", f.Path, err)
			}
			if !done[f.Path] && (!ok || again[f.Path]) {
				left.Write = append(left.Write, f)
			}
			done[f.Path] = done[f.Path] || ok
		}
		for _, name := range s.Remove {
			there, err := root.removable(name)
			if err != nil {
				return Plan{}, fmt.Errorf("remove %s: %w", name, err)
			}
			if there {
				left.Remove = append(left.Remove, name)
			}
		}
		if len(left.Write)+len(left.Remove) > 0 {
			steps = append(steps, left)
		}
	}
	slices.Reverse(steps)
	p.Steps = steps
	return p, nil
}
