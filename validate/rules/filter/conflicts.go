package filter

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// reportConflicts reports each collected message that uses a singleton with other settings than the first message
// that uses it.
func reportConflicts(p *validate.SnapshotPass) {
	type place struct {
		xds.SingletonUse
		in validate.Occurrence
	}
	first := make(map[xds.Singleton]place)
	for _, m := range p.Collected {
		if facts.IsUnread(m.Node) {
			continue
		}
		for _, s := range singletonsOf(m.Node) {
			other, again := first[s.Singleton]
			switch {
			case !again:
				first[s.Singleton] = place{s, m}
			case s.Settings != other.Settings:
				p.Report(validate.Finding{
					Resource: m.Resource,
					Path:     s.Path,
					Message:  fmt.Sprintf("%s has different settings here and in %s", s.Singleton, other.in.Resource.Key),
					Help:     "write the same settings in both places, or use different names",
					Related:  facts.Related(other.in.Resource, other.Path, "the first one is here"),
					Warning:  s.Tolerated,
				})
			}
		}
	}
}

// singletonsOf returns the singletons that a message uses. It returns nil for a message that can't be encoded,
// which the loader has reported.
func singletonsOf(n *xds.Node) []xds.SingletonUse {
	if m, ok := n.Message.(*corev3.AlternateProtocolsCacheOptions); ok {
		settings, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return nil
		}
		return []xds.SingletonUse{{
			Singleton: xds.Singleton{Noun: "alternate protocols cache", Name: m.GetName()},
			Path:      n.Path().Field("name"), Settings: string(settings),
		}}
	}
	list, err := n.Singletons()
	if err != nil {
		return nil
	}
	return list
}

const asyncFileManager = "envoy.extensions.common.async_files.v3.AsyncFileManagerConfig"
