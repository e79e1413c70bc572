package decode

import (
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Shows implements xds.Origin. A line is shown if no field around the value is for secrets, and if the line
// holds only harmless fields of the API. A line of any other form is hidden.
func (o origin) Shows(path xds.Path) bool {
	if slices.ContainsFunc(steps(o.base.Join(path)), o.source.MayBeSecret) {
		return false
	}
	line, ok := o.source.Line(o.Range(path).Line)
	return ok && isHarmless(o.source, line)
}

var (
	// beginsWithField matches the beginning of a line that is no part of a text above.
	beginsWithField = regexp.MustCompile(`^\s*(?:- )*[{\[]*["']?[A-Za-z_@][\w@]*["']?\s*[:{]`)
	// fieldOnLine finds what may be the name of a field.
	fieldOnLine = regexp.MustCompile(`([^\s{}\[\]"',:]+)["']?\s*[:{]`)
)

// isHarmless reports whether each name on a line is a field of the API that holds no secrets. The key and the
// value of a header may be a credential.
func isHarmless(s *Source, line string) bool {
	if !beginsWithField.MatchString(line) || strings.ContainsAny(line, "|>&*!") {
		return false
	}
	for _, found := range fieldOnLine.FindAllStringSubmatch(line, -1) {
		if name := found[1]; name == "key" || name == "value" || name == "raw_value" || !xds.IsFieldName(name) || s.MayBeSecret(name) {
			return false
		}
	}
	return true
}

// Visible returns a function that reports whether a line may be shown to people who see other lines of the source,
// too. If the source has no key of a secret and no text that looks like a secret, each line may. Otherwise, a line may
// be shown if it is blank, or if it holds only harmless fields of the API.
func Visible(s *Source) func(line string) bool {
	if !s.Sensitive() && !diag.MayReveal(string(s.Data())) {
		return func(string) bool { return true }
	}
	return func(line string) bool {
		return strings.TrimSpace(line) == "" || len(line) <= syntax.LongLine && !diag.MayReveal(line) && isHarmless(s, line)
	}
}

// Range implements xds.Origin.
func (o origin) Range(path xds.Path) diag.Range {
	return o.document().RangeOf(steps(o.base.Join(path)), false)
}

// File returns the path of the file.
func (o origin) File() string { return o.source.Name }

// InWrapper implements xds.Origin.
func (o origin) InWrapper(path xds.Path) diag.Range {
	wrapper := steps(o.base)
	return o.document().RangeOf(append(wrapper[:max(0, len(wrapper)-1)], steps(path)...), false)
}

// Constraints implements xds.Origin.
func (o origin) Constraints(own bool) diag.Range {
	if c := o.source.clients; !own && c != nil {
		return c.At
	}
	return o.InWrapper("resource_name")
}

// Correct implements xds.Origin.
func (o origin) Correct(path xds.Path, c diag.Correction) (diag.Edit, bool) {
	tokens, isKey := steps(o.base.Join(path)), false
	for s := range path.Steps() {
		isKey = s.Key && s.Name == c.Wrong
	}
	if last := len(tokens) - 1; isKey && o.document().Has(append(tokens[:last:last], c.Right)) {
		return diag.Edit{}, false
	}
	return o.document().Correct(tokens, isKey, c)
}

// FileOf returns the path of the file that a decoded resource stands in.
func FileOf(r *xds.Resource) string { return r.Origin.(origin).source.Name }
