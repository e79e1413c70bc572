package xds

import "slices"

// Lost has the paths of the values that could not be read from the source of a resource, so that its message lacks
// them. These paths have true. The paths around them have false. A nil Lost has no paths.
type Lost map[Path]bool

// Add adds the path of a lost value.
func (l *Lost) Add(p Path) {
	if *l == nil {
		*l = make(Lost)
	}
	for _, around := range slices.Backward(p.prefixes()) {
		if _, met := (*l)[around]; met {
			break
		}
		(*l)[around] = false
	}
	(*l)[p] = true
}

// Echoes reports whether a finding at p may be only a consequence of a lost value: a value at p, below p or around
// p is lost.
func (l Lost) Echoes(p Path) bool {
	if len(l) == 0 {
		return false
	}
	if _, met := l[p]; met {
		return true
	}
	return slices.ContainsFunc(p.prefixes(), func(around Path) bool { return l[around] })
}

// All reports whether the message as a whole is lost: the empty Path.
func (l Lost) All() bool { return l[""] }

// prefixes returns the paths around p, from the outside in.
func (p Path) prefixes() []Path {
	var list []Path
	var at Path
	for step := range p.Steps() {
		list = append(list, at)
		switch {
		case step.Key:
			at = at.Key(step.Name)
		case step.Name != "":
			at = at.Field(step.Name)
		default:
			at = at.Index(step.Index)
		}
	}
	return list
}
