package diag

import (
	"cmp"
	"fmt"
	"regexp"
)

// Of more findings than mostAlike that are alike, the first shownAlike are shown.
const (
	mostAlike  = 10
	shownAlike = 5
)

// Alike counts findings that were left out because they say of further resources what others say.
type Alike struct {
	Code string
	// At is where the first finding of them all stands.
	At Position
	// Left is how many were left out, and Files in how many files.
	Left, Files int
}

// String says how many there are more: … and 214 more like a.yaml:3:1 in 12 files [unknown-field].
func (a Alike) String() string {
	return fmt.Sprintf("… and %d more like %s in %s [%s]", a.Left, cmp.Or(Printable(a.At.String()), "it"), Count(a.Files, "file"), a.Code)
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// WithoutAlike returns the list with a few findings of each kind of which there are many, and what
// was left out: findings are alike that have one code, one severity, and one message but for the
// names in it, which are quoted.
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
