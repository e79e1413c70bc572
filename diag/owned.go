package diag

import "slices"

// Identity identifies a finding. Two findings with the same Identity say the same about the same place; only their
// severities, help and fixes may differ.
type Identity struct {
	code, path, message string
	at                  Position
	resource            Resource
}

// Identity returns the Identity of the finding.
func (d Diagnostic) Identity() Identity {
	return Identity{d.Code, d.Path, d.Message, d.Position, d.Resource}
}

// Owned collects the findings of several owners, such as clients. It keeps equal findings of several owners once,
// in the order of their first owner. The zero value is empty.
type Owned struct {
	owners int
	list   []OwnedBy
	at     map[Identity]int // the index in list
}

// OwnedBy is a finding with its owners.
type OwnedBy struct {
	Diagnostic
	// Owners are the numbers of the owners, in ascending order.
	Owners []int
}

// Add adds the findings of the next owner. The first owner has the number 0.
func (o *Owned) Add(list List) {
	if o.at == nil {
		o.at = make(map[Identity]int)
	}
	for _, d := range list {
		id := d.Identity()
		i, known := o.at[id]
		if !known {
			i = len(o.list)
			o.at[id] = i
			o.list = append(o.list, OwnedBy{Diagnostic: d})
		}
		if of := o.list[i].Owners; len(of) == 0 || of[len(of)-1] != o.owners {
			o.list[i].Owners = append(of, o.owners)
		}
	}
	o.owners++
}

// List returns the findings with their owners.
func (o *Owned) List() []OwnedBy { return o.list }

// Without returns the findings of l that are not in another list.
func (l List) Without(other List) List {
	if len(other) == 0 {
		return l
	}
	in := make(map[Identity]bool, len(other))
	for _, d := range other {
		in[d.Identity()] = true
	}
	return slices.DeleteFunc(slices.Clone(l), func(d Diagnostic) bool { return in[d.Identity()] })
}
