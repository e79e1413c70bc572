package diag

import "slices"

// Most returns the n findings of a sorted list that matter most, in their order, and how
// many that leaves out: errors come before all else, and what stands first before
// what stands later. n = 0 stands for all.
func (l List) Most(n int) (most List, left int) {
	if n == 0 || len(l) <= n {
		return l, 0
	}
	errors := min(l.Count(Error), n)
	others := n - errors
	for _, d := range l {
		room := &others
		if d.Severity == Error {
			room = &errors
		}
		if *room > 0 {
			*room--
			most = append(most, d)
		}
	}
	return slices.Clip(most), len(l) - n
}
