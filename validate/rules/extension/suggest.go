package extension

import (
	"xdspub/validate"
	"xdspub/xds"
)

// suggestType says in a finding what to write in place of an unknown type URL.
func suggestType(f *validate.Finding, url string) {
	f.Correction.Wrong = url
	f.Help, f.Correction.Right = xds.SuggestType(url)
}
