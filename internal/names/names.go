// Package names keeps counts and sorted lists of names up to date, at a cost that follows what
// changes in them.
package names

import "slices"

// Counts are names, each with how often it was added. One that was taken away as often is none
// of them.
type Counts map[string]int

// Add adds each of the names n times, which may be below 0.
func (c Counts) Add(names []string, n int) {
	for _, name := range names {
		if c[name] += n; c[name] == 0 {
			delete(c, name)
		}
	}
}

// Merge returns a sorted list after a change: with the names of the change that are true, and
// without those that are false. It leaves the list as it is, and returns it where the change
// changes nothing.
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
