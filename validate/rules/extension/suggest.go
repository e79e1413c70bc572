package extension

import (
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
)

// suggestType adds to a finding the correction of an unknown type URL, and its help.
func suggestType(v *envoyapi.Version, f *validate.Finding, url string) {
	f.Correction.Wrong = url
	f.Help, f.Correction.Right = v.SuggestType(url)
}
