package diag

import (
	"cmp"
	"fmt"
	"regexp"
)

// WithoutAlike shows the first shownAlike findings of a kind with more than mostAlike findings.
const (
	mostAlike  = 10
	shownAlike = 5
)

// Alike counts findings of one kind that WithoutAlike left out.
type Alike struct {
	Code string
	// At is the position of the first finding of the kind.
	At Position
	// Left is the number of findings that were left out, Files the number of files with these findings.
	Left, Files int
}

// String returns a line such as: … and 214 more like a.yaml:3:1 in 12 files [unknown-field].
func (a Alike) String() string {
	return fmt.Sprintf("… and %d more like %s in %s [%s]", a.Left, cmp.Or(Printable(a.At.String()), "it"), Count(a.Files, "file"), a.Code)
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// WithoutAlike returns l with only a few findings of each frequent kind, and counts the findings that it leaves
// out. Findings of a kind have the same code and severity, and the same message except for quoted names.
func (l List) WithoutAlike() (List, []Alike) {
	if len(l) <= mostAlike {
		return l, nil
	}
	type kind struct {
		code     string
		severity Severity
		message  string
	}
	kinds := make([]kind, len(l))
	count := make(map[kind]int)
	for i, d := range l {
		kinds[i] = kind{d.Code, d.Severity, quoted.ReplaceAllLiteralString(d.Message, `""`)}
		count[kinds[i]]++
	}
	var few List
	var left []Alike
	shown, at := make(map[kind]int), make(map[kind]int)
	files := make(map[kind]map[string]bool)
	for i, d := range l {
		k := kinds[i]
		if shown[k]++; count[k] <= mostAlike || shown[k] <= shownAlike {
			few = append(few, d)
			if count[k] > mostAlike && shown[k] == 1 {
				at[k], files[k] = len(left), make(map[string]bool)
				left = append(left, Alike{Code: d.Code, At: d.Position, Left: count[k] - shownAlike})
			}
			continue
		}
		files[k][d.File] = true
		left[at[k]].Files = len(files[k])
	}
	return few, left
}
