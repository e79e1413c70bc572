package extension

import (
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
)

// suggestType adds to a finding the correction of an unknown type URL, and its help.
func suggestType(v *envoyapi.Version, f *validate.Finding, url string) {
	f.Help, f.Correction = v.SuggestType(url)
}
