package validate

import (
	"fmt"
	"regexp"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var bootstrapOptions = &Rule{
	Code: "bootstrap-options",
	Doc: `A bootstrap says what can't be, and Envoy does not start.

Of two ways to say one thing only one may be used: "Only one of watchdog or watchdogs
should be set!", "Only one of stats_flush_interval or stats_flush_on_admin should be
set!". Runtime layers have names of their own ("Duplicate layer name: a") and at most
one of them is the admin's ("Too many admin layers specified"). Resource monitors stand
once ("Duplicate resource monitor"), a heap has a size ("max heap size must be greater
than 0"), a scaled trigger begins before it is saturated, and reduce_timeouts has a
configuration. ads_config is a gRPC one ("must be of non-aggregated gRPC"), and default_config_source and
config_sources are API ones ("Only api_config_source type is currently supported").
lds_resources_locator begins with xdstp: or file:.`,
	Messages: []protoreflect.FullName{
		"envoy.config.bootstrap.v3.Bootstrap",
		"envoy.config.bootstrap.v3.LayeredRuntime",
		"envoy.config.overload.v3.OverloadManager",
		"envoy.config.overload.v3.ScaledTrigger",
		"envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig",
	},
	Node: func(p *Pass, n *xds.Node) {
		report := func(at xds.Path, message, help string) {
			p.Report(Finding{Path: n.Path().Join(at), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *bootstrapv3.Bootstrap:
			checkBootstrap(m, report)
		case *bootstrapv3.LayeredRuntime:
			checkLayers(m, report)
		case *overloadv3.OverloadManager:
			checkOverload(m, report)
		case *overloadv3.ScaledTrigger:
			if m.GetScalingThreshold() >= m.GetSaturationThreshold() {
				report("saturation_threshold", fmt.Sprintf("saturation_threshold %v is not above scaling_threshold %v", m.GetSaturationThreshold(), m.GetScalingThreshold()), "let the action begin before it is saturated")
			}
		case *heapv3.FixedHeapConfig:
			if m.GetMaxHeapSizeBytes() == 0 {
				report("max_heap_size_bytes", "max_heap_size_bytes is 0", "say how large the heap may become")
			}
		}
	},
}

var locatorScheme = regexp.MustCompile(`^(?:xdstp|http|file):`)

func checkBootstrap(b *bootstrapv3.Bootstrap, report func(at xds.Path, message, help string)) {
	if b.GetWatchdog() != nil && b.GetWatchdogs() != nil {
		report("watchdog", "watchdog stands beside watchdogs", "keep watchdogs")
	}
	if b.GetStatsFlushInterval() != nil && b.GetStatsFlushOnAdmin() {
		report("stats_flush_interval", "stats_flush_interval stands beside stats_flush_on_admin", "keep one of them")
	}
	dynamic := b.GetDynamicResources()
	if ads := dynamic.GetAdsConfig(); ads != nil && ads.GetApiType() != corev3.ApiConfigSource_GRPC && ads.GetApiType() != corev3.ApiConfigSource_DELTA_GRPC {
		report("dynamic_resources.ads_config.api_type", fmt.Sprintf("ads_config of type %s", ads.GetApiType()), "write GRPC or DELTA_GRPC")
	}
	if locator := dynamic.GetLdsResourcesLocator(); locator != "" && !locatorScheme.MatchString(locator) {
		report("dynamic_resources.lds_resources_locator", fmt.Sprintf("locator %q is none of xdstp: or file:", locator), "write xdstp://AUTHORITY/envoy.config.listener.v3.Listener/…")
	}
	onlyAPI := func(source *corev3.ConfigSource, at xds.Path) {
		if source != nil && source.GetApiConfigSource() == nil {
			report(at, "a source for xdstp names that is no api_config_source", "give it an api_config_source, or remove it")
		}
	}
	onlyAPI(b.GetDefaultConfigSource(), "default_config_source")
	for i, source := range b.GetConfigSources() {
		onlyAPI(source, xds.Path("config_sources").Index(i))
	}
}

func checkLayers(m *bootstrapv3.LayeredRuntime, report func(at xds.Path, message, help string)) {
	names := make(map[string]bool)
	admin := false
	for i, layer := range m.GetLayers() {
		at := xds.Path("layers").Index(i)
		if names[layer.GetName()] {
			report(at.Field("name"), fmt.Sprintf("runtime layer %q stands twice", layer.GetName()), "give each layer a name of its own")
		}
		names[layer.GetName()] = true
		if layer.GetAdminLayer() != nil {
			if admin {
				report(at.Field("admin_layer"), "a second admin layer", "keep one of them")
			}
			admin = true
		}
	}
}

func checkOverload(m *overloadv3.OverloadManager, report func(at xds.Path, message, help string)) {
	names := make(map[string]bool)
	for i, monitor := range m.GetResourceMonitors() {
		if names[monitor.GetName()] {
			report(xds.Path("resource_monitors").Index(i).Field("name"), fmt.Sprintf("resource monitor %q stands twice", monitor.GetName()), "keep one of them")
		}
		names[monitor.GetName()] = true
	}
	for i, action := range m.GetActions() {
		if action.GetName() == "envoy.overload_actions.reduce_timeouts" && action.GetTypedConfig() == nil {
			report(xds.Path("actions").Index(i), "reduce_timeouts has no typed_config", "give it an envoy.config.overload.v3.ScaleTimersOverloadActionConfig")
		}
	}
}
