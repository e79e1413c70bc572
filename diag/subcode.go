package diag

import (
	"iter"
	"strings"
)

// Check is one of several decisions of a code. Users can disable a Check alone. The findings of a Check have a
// sub-code: the name of the code, a slash, and the name of the Check.
type Check struct {
	// Name is the name of the fault in kebab-case. It is never used again for another fault.
	Name string
	// Summary describes the fault in a sentence.
	Summary string
}

// SubCode returns the sub-code of a check. If check is empty, it returns code.
func SubCode(code, check string) string {
	if check == "" {
		return code
	}
	return code + "/" + check
}

// CodeOf returns the code that a sub-code belongs to. It returns a code without a check unchanged.
func CodeOf(sub string) string {
	code, _, _ := strings.Cut(sub, "/")
	return code
}

// Selectors returns the names by which settings select the findings of a code: for a sub-code, first the sub-code
// and then its code. A setting for the first name wins.
func Selectors(code string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if of := CodeOf(code); yield(code) && of != code {
			yield(of)
		}
	}
}

// WithSubCodes returns codes, each followed by its sub-codes. The first line of a sub-code's Doc is its own; the
// rest of the Doc and the URL are those of the code.
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
