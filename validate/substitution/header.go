package substitution

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	oldMetadata = regexp.MustCompile(`%(UPSTREAM|DYNAMIC)_METADATA\(\s*(\[(?:.|\r?\n)+?\]\s*)\)%`)
	oldState    = regexp.MustCompile(`%PER_REQUEST_STATE\((.+?)\)%`)
)

// CheckHeader checks the value of a header that a route adds. In such a value, Envoy also accepts the older forms
// of %UPSTREAM_METADATA%, %DYNAMIC_METADATA% and %PER_REQUEST_STATE%, and replaces them by today's forms.
func (l *Language) CheckHeader(value string, x Extensions) []Fault {
	if !strings.Contains(value, "%") {
		return nil
	}
	var old []Fault
	renew := func(form, now string) string {
		old = append(old, Fault{Message: form + " is obsolete", Help: "write " + now, Taken: true})
		return now
	}
	value = oldMetadata.ReplaceAllStringFunc(value, func(form string) string {
		m := oldMetadata.FindStringSubmatch(form)
		var path []string
		if json.Unmarshal([]byte(m[2]), &path) != nil {
			return form
		}
		if len(path) == 0 {
			return "%" + m[1] + "_METADATA(" + m[2] + ")%" // an empty path names no field: Envoy keeps the text
		}
		return renew(form, fmt.Sprintf("%%%s_METADATA(%s)%%", m[1], strings.Join(path, ":")))
	})
	value = oldState.ReplaceAllStringFunc(value, func(form string) string {
		return renew(form, fmt.Sprintf("%%FILTER_STATE(%s:PLAIN)%%", oldState.FindStringSubmatch(form)[1]))
	})
	faults := l.Check(value, x)
	if len(faults) > 0 {
		return faults
	}
	return old
}
