package validate

import (
	"strconv"
	"strings"
)

// nearest returns the candidate that name was most likely meant to be: the first
// of those with the fewest changed letters, or "" where none is close.
func nearest(name string, candidates []string) string {
	limit := max(1, min(2, len(name)/3))
	best := ""
	for _, c := range candidates {
		if d := distance(name, c, limit); d > 0 && d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// distance is the number of letters to insert, drop or replace to make b of a,
// or some number above limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, smallest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			smallest = min(smallest, cost)
		}
		if smallest > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

// quoted lists names for a person, not more than fit a line or two.
func quoted(names []string) string {
	const most = 8
	var b strings.Builder
	for i, name := range names {
		if i == most {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(name))
	}
	return b.String()
}
