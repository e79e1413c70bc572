package diag

import (
	"iter"
	"strings"
)

// Check is one of several decisions of a code. Users can switch off a Check alone. Its findings have a
// sub-code: the code's name, a slash, and the check's name.
type Check struct {
	// Name names the fault in kebab-case, and is never used again for another fault.
	Name string
	// Summary describes the fault in a sentence.
	Summary string
}

// SubCode returns the sub-code of a check; of an empty name it returns the code itself.
func SubCode(code, check string) string {
	if check == "" {
		return code
	}
	return code + "/" + check
}

// CodeOf returns the code of a sub-code, and any other code unchanged.
func CodeOf(sub string) string {
	code, _, _ := strings.Cut(sub, "/")
	return code
}

// Selectors returns the names that select findings of a code: the sub-code, then its code. A setting for the
// first name wins over a setting for the second.
func Selectors(code string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if of := CodeOf(code); yield(code) && of != code {
			yield(of)
		}
	}
}

// WithSubCodes returns codes, each followed by its sub-codes. The Doc of a sub-code differs from the code's in
// its first line. Both share a page.
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
