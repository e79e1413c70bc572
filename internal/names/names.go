// Package names keeps counts and sorted lists of names up to date, at a cost that follows what
// changes in them.
package names

import "slices"

// Counts counts how often each name was added. A name with a count of 0 is absent.
type Counts map[string]int

// Add adds each of the names n times, which may be below 0.
func (c Counts) Add(names []string, n int) {
	for _, name := range names {
		if c[name] += n; c[name] == 0 {
			delete(c, name)
		}
	}
}

// Merge returns a sorted list after a change: with the names that are true in change, and without the names
// that are false. Merge does not modify sorted, and returns it if the change has no effect.
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
