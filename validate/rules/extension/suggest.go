package extension

import (
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
)

// suggestType says in a finding what to write in place of an unknown type URL.
func suggestType(v *envoyapi.Version, f *validate.Finding, url string) {
	f.Correction.Wrong = url
	f.Help, f.Correction.Right = v.SuggestType(url)
}
