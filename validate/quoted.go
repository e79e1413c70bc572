package validate

import (
	"strconv"
	"strings"
)

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
