package diag

import (
	"iter"
	"strings"
)

// Check is one of several decisions that a code holds, so that it can be switched off without the
// others. Its findings have a sub-code: the name of the code, a slash, and that of the check.
type Check struct {
	// Name says what is wrong in kebab-case, never used again for something else.
	Name string
	// Summary says it in a sentence.
	Summary string
}

// SubCode returns the sub-code of a check; of an empty name it returns the code itself.
func SubCode(code, check string) string {
	if check == "" {
		return code
	}
	return code + "/" + check
}

// CodeOf returns the code of a sub-code; any other code stays as it is.
func CodeOf(sub string) string {
	code, _, _ := strings.Cut(sub, "/")
	return code
}

// Selectors are the names by which somebody can mean a finding, by its code: the sub-code, and the
// code that it belongs to. What is said of the first one counts before what is said of the second.
func Selectors(code string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if of := CodeOf(code); yield(code) && of != code {
			yield(of)
		}
	}
}

// WithSubCodes returns codes, each with its sub-codes behind it. The Doc of a sub-code is that of the
// code, but for the first line; it has the same page.
func WithSubCodes(codes []Code) (all []Code) {
	for _, c := range codes {
		all = append(all, c)
		reason := strings.TrimPrefix(c.Doc, c.Summary())
		for _, check := range c.Checks {
			all = append(all, Code{Name: SubCode(c.Name, check.Name), Severity: c.Severity, Doc: check.Summary + reason, Family: c.Family, URL: c.URL})
		}
	}
	return all
}
