// Package names updates counts and sorted lists of names. The cost of an update depends on the number of changed
// names, except for copying a list.
package names

import "slices"

// Counts maps a name to the number of times that it was added. It has no names with a count of 0.
type Counts map[string]int

// Add adds n to the counts of names. n may be negative.
func (c Counts) Add(names []string, n int) {
	for _, name := range names {
		if c[name] += n; c[name] == 0 {
			delete(c, name)
		}
	}
}

// Merge returns sorted with the names that are true in change, and without the names that are false. Merge does not
// modify sorted, and returns it if nothing changes.
func Merge(sorted []string, change map[string]bool) []string {
	var moved []string
	for name, in := range change {
		if _, found := slices.BinarySearch(sorted, name); found != in {
			moved = append(moved, name)
		}
	}
	if len(moved) == 0 {
		return sorted
	}
	slices.Sort(moved)
	merged := make([]string, 0, len(sorted)+len(moved))
	for _, name := range moved {
		i, found := slices.BinarySearch(sorted, name)
		merged, sorted = append(merged, sorted[:i]...), sorted[i:]
		if found {
			sorted = sorted[1:]
		} else {
			merged = append(merged, name)
		}
	}
	return append(merged, sorted...)
}
