package xds

import "slices"

// Lost holds the paths of the values in a resource that could not be read from the source, and
// that its Message lacks. nil is none.
type Lost map[Path]bool // false for what stands around such a place

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

// Echoes reports whether a finding at a path may only follow from a lost value: one at the path,
// below it, or around it.
func (l Lost) Echoes(p Path) bool {
	if len(l) == 0 {
		return false
	}
	if _, met := l[p]; met {
		return true
	}
	return slices.ContainsFunc(p.prefixes(), func(around Path) bool { return l[around] })
}

// All reports whether the whole resource is lost.
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
