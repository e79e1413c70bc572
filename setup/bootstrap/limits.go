package bootstrap

import (
	"maps"
	"slices"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	downstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// heapActions are the actions of Envoy when its memory fills up. At the first share of the limit, it returns free
// memory to the system; at the second, it answers new requests with 503. The shares are those of Envoy's guide for
// edge proxies.
var heapActions = []struct {
	name  string
	above float64
}{
	{"envoy.overload_actions.shrink_heap", 0.95},
	{"envoy.overload_actions.stop_accepting_requests", 0.98},
}

// overloadManager returns the overload manager with the limits, or nil without a limit.
func overloadManager(connections, heap uint64) (*overloadv3.OverloadManager, error) {
	if connections == 0 && heap == 0 {
		return nil, nil
	}
	m := &overloadv3.OverloadManager{RefreshInterval: durationpb.New(250 * time.Millisecond)}
	monitor := func(name string, config proto.Message) error {
		packed, err := anypb.New(config)
		m.ResourceMonitors = append(m.ResourceMonitors, &overloadv3.ResourceMonitor{
			Name: name, ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: packed},
		})
		return err
	}
	if connections > 0 {
		err := monitor("envoy.resource_monitors.global_downstream_max_connections",
			&downstreamv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: int64(connections)})
		if err != nil {
			return nil, err
		}
	}
	if heap == 0 {
		return m, nil
	}
	const used = "envoy.resource_monitors.fixed_heap"
	for _, a := range heapActions {
		m.Actions = append(m.Actions, &overloadv3.OverloadAction{Name: a.name, Triggers: []*overloadv3.Trigger{{
			Name: used, TriggerOneof: &overloadv3.Trigger_Threshold{Threshold: &overloadv3.ThresholdTrigger{Value: a.above}},
		}}})
	}
	return m, monitor(used, &heapv3.FixedHeapConfig{MaxHeapSizeBytes: heap})
}

// statsConfig returns the configuration of statistics with tags, or nil without tags.
func statsConfig(tags map[string]string) *metricsv3.StatsConfig {
	if len(tags) == 0 {
		return nil
	}
	c := new(metricsv3.StatsConfig)
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		c.StatsTags = append(c.StatsTags, &metricsv3.TagSpecifier{
			TagName: name, TagValue: &metricsv3.TagSpecifier_FixedValue{FixedValue: tags[name]},
		})
	}
	return c
}
