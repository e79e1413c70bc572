package load

import (
	"xdspub/envoy/envoyapi"
	"xdspub/source/decode"
	"xdspub/xds"
)

// Subscribed reads a file that Envoy itself subscribes to for resources of a type: one DiscoveryResponse, in
// the format that Envoy derives from the suffix. The findings include values that Envoy's parser reads in
// another way than written. Subscribed does not read files that resources name.
//
// v is the release that reads the file; nil means the latest known release. A text of the Overlay replaces the
// file. The error is not nil if the file can't be read.
func Subscribed(path string, of *xds.Type, v *envoyapi.Version, o Overlay) (*Result, error) {
	s, err := o.source(path, decode.SourceOptions{Envoy: v, Subscription: of})
	if err != nil {
		return nil, err
	}
	_, result := parse(s, nil)
	return result, nil
}
