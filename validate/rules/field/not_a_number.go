package field

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var notANumber = &validate.Rule{
	Code: "not-a-number",
	Doc: `A number is NaN or infinite.

The constraints of the API let NaN through, since it is neither too small nor too
large. Where Envoy rounds a percentage it refuses one ("Value not in the range of
0..100 range."), and a healthy_panic_threshold of NaN that comes while it runs ends
it with std::terminate; with a per_upstream_preconnect_ratio of NaN every request
hangs: an error. Elsewhere it takes NaN and infinity, and
comparisons go wrong without a word: a warning.`,
	Wants: func(md protoreflect.MessageDescriptor) bool { return len(floatFields(md)) > 0 },
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.ProtoReflect()
		for _, fd := range floatFields(m.Descriptor()) {
			if !m.Has(fd) {
				continue
			}
			check := func(v protoreflect.Value, path func() xds.Path) {
				if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) && keepsConstraints(n) {
					p.Report(validate.Finding{
						Path: path(), Message: fmt.Sprintf("%s is %v", fd.Name(), f), Help: "give a finite number",
						Warning: !slices.Contains(refusesNaN, n.Field()),
					})
				}
			}
			path := func() xds.Path { return n.Path().Field(string(fd.Name())) }
			if !fd.IsList() {
				check(m.Get(fd), path)
				continue
			}
			list := m.Get(fd).List()
			for i := range list.Len() {
				check(list.Get(i), func() xds.Path { return path().Index(i) })
			}
		}
	},
}

// refusesNaN are the fields whose number Envoy 1.40.0 takes no NaN for, or none that
// it could work with; each holds it in a message.
var refusesNaN = []protoreflect.FullName{
	"envoy.config.cluster.v3.Cluster.CommonLbConfig.ZoneAwareLbConfig.routing_enabled",
	"envoy.config.cluster.v3.Cluster.CommonLbConfig.healthy_panic_threshold",
	"envoy.config.cluster.v3.Cluster.PreconnectPolicy.per_upstream_preconnect_ratio",
	"envoy.config.cluster.v3.Cluster.SlowStartConfig.min_weight_percent",
	"envoy.config.core.v3.RateLimitSettings.fill_rate",
	"envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig.MinimumRTTCalculationParams.buffer",
	"envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig.MinimumRTTCalculationParams.jitter",
	"envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig.sample_aggregate_percentile",
	"envoy.extensions.filters.http.health_check.v3.HealthCheck.cluster_min_healthy_percentages",
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing.overall_sampling",
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing.random_sampling",
	"envoy.extensions.load_balancing_policies.common.v3.LocalityLbConfig.ZoneAwareLbConfig.routing_enabled",
	"envoy.extensions.load_balancing_policies.common.v3.SlowStartConfig.min_weight_percent",
	"envoy.extensions.load_balancing_policies.load_aware_locality.v3.LoadAwareLocality.remote_probe_fraction",
	"envoy.extensions.load_balancing_policies.load_aware_locality.v3.LoadAwareLocality.utilization_variance_threshold",
}

// keepsConstraints reports whether no constraint stands against an infinite number
// of the node's message: field-constraint has those. The constraints of a wrapper
// belong to the message around it.
func keepsConstraints(n *xds.Node) bool {
	for _, at := range []*xds.Node{n, n.Parent} {
		if at == nil {
			break
		}
		if xds.Constraints(at.Message) != nil {
			return false
		}
	}
	return true
}

// floatFields are the fields of md that hold floating point numbers. The answer
// is kept: each message of a type that has some asks.
func floatFields(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := floatsOf.Load(md); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var fields []protoreflect.FieldDescriptor
	for i := range md.Fields().Len() {
		switch fd := md.Fields().Get(i); fd.Kind() {
		case protoreflect.DoubleKind, protoreflect.FloatKind:
			fields = append(fields, fd)
		}
	}
	floatsOf.Store(md, fields)
	return fields
}

var floatsOf sync.Map // protoreflect.MessageDescriptor → []protoreflect.FieldDescriptor
