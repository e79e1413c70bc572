package diag

import "slices"

// Most returns the n most important findings of a sorted list, in the order of the list, and the number of the
// other findings. Errors are more important than other findings, and earlier findings are more important than later
// ones. If n is 0, Most returns the whole list.
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
