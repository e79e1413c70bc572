package validate

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var conflictingCache = &Rule{
	Code: "conflicting-cache",
	Doc: `Two caches, or bandwidth buckets, of one name have different settings.

DNS caches of the dynamic forward proxy, caches of alternate protocols, HTTP caches in a
directory and the buckets of bandwidth_share belong to the whole Envoy: a filter and its
cluster share one by its name. Envoy refuses the second that differs ("config specified
DNS cache 'x' with different settings", "mismatched FileSystemHttpCacheConfig with same
path", "to have different config you must use a distinct bucket_id"), in however small a
thing; redis_proxy it takes, and its settings are not in effect (a warning).`,
	Gather: slices.DeleteFunc(append(slices.Clone(xds.SingletonMessages), "envoy.config.core.v3.AlternateProtocolsCacheOptions"), func(name protoreflect.FullName) bool {
		return name == asyncFileManager
	}),
	Snapshot: reportConflicts,
}

// reportConflicts reports those that ask for something shared with other settings
// than the first.
func reportConflicts(p *SnapshotPass) {
	type place struct {
		xds.SingletonUse
		in Met
	}
	first := make(map[xds.Singleton]place)
	for _, m := range p.Gathered {
		if unread(m.Node) {
			continue
		}
		for _, s := range sharingOf(m.Node) {
			other, again := first[s.Singleton]
			switch {
			case !again:
				first[s.Singleton] = place{s, m}
			case s.Settings != other.Settings:
				p.Report(Finding{
					Resource: m.Resource,
					Path:     s.Path,
					Message:  fmt.Sprintf("%s has other settings here than in %s", s.Singleton, other.in.Resource.Key),
					Help:     "write the same settings in both places, or name them differently",
					Related:  related(other.in.Resource, other.Path, "the first"),
					Warning:  s.Tolerated,
				})
			}
		}
	}
}

// sharingOf is what a message asks for that everyone shares. What can't be written
// was never read: load has reported it.
func sharingOf(n *xds.Node) []xds.SingletonUse {
	if m, ok := n.Message.(*corev3.AlternateProtocolsCacheOptions); ok {
		settings, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return nil
		}
		return []xds.SingletonUse{{Singleton: xds.Singleton{Noun: "cache of alternate protocols", Name: m.GetName()}, Path: n.Path().Field("name"), Settings: string(settings)}}
	}
	list, err := n.Singletons()
	if err != nil {
		return nil
	}
	return list
}
