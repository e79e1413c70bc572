package telemetry

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var statsMatcher = &validate.Rule{
	Code: "stats-matcher",
	Doc: `The stats matcher in the metadata of a listener or cluster is invalid.

Envoy ignores typed_filter_metadata, with one exception: the value at the key
envoy.stats_matcher in the metadata of a listener or cluster must be a valid StatsMatcher,
without TypedStruct ("Failed to unpack stats matcher"). Envoy accepts a cluster with another
message there, and collects all of its statistics (a warning).`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster", "envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		const key = "envoy.stats_matcher"
		var metadata *corev3.Metadata
		goesOn := false
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			metadata, goesOn = m.GetMetadata(), true
		case *listenerv3.Listener:
			metadata = m.GetMetadata()
		}
		a, set := metadata.GetTypedFilterMetadata()[key]
		if !set {
			return
		}
		path := n.Path().Field("metadata").Field("typed_filter_metadata").Key(key)
		var m metricsv3.StatsMatcher
		if err := a.UnmarshalTo(&m); err != nil {
			p.Report(validate.Finding{
				Path: path, Warning: goesOn,
				Message: fmt.Sprintf("%s is not allowed at the key %q", a.MessageName(), key),
				Help:    "write a StatsMatcher, without TypedStruct",
			})
			return
		}
		if err := xds.Constraints(&m); err != nil {
			for _, v := range facts.Violations(err, m.ProtoReflect(), path) {
				p.Report(validate.Finding{Path: v.Path, Message: v.Message, Help: v.Help})
			}
		}
	},
}
