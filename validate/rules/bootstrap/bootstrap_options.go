package bootstrap

import (
	"fmt"
	"regexp"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var bootstrapOptions = &validate.Rule{
	Code: "bootstrap-options",
	Doc: `A bootstrap has invalid or conflicting options, and Envoy does not start.

Some fields are alternatives: "Only one of watchdog or watchdogs should be set!", "Only one
of stats_flush_interval or stats_flush_on_admin should be set!". Each runtime layer needs
its own name ("Duplicate layer name: a"), and only one may be an admin layer ("Too many
admin layers specified"). In the overload manager each resource monitor may appear once
("Duplicate resource monitor"), a fixed heap needs a size ("max heap size must be greater
than 0"), scaling_threshold must be below saturation_threshold, and reduce_timeouts needs a
typed_config. lds_resources_locator must begin with xdstp: or file:.

ads_config must be gRPC ("must be of non-aggregated gRPC") with one service ("must have no
more than 1 gRPC services specified"). default_config_source and config_sources must use
api_config_source ("Only api_config_source type is currently supported") with an aggregated
type ("only supports AGGREGATED_GRPC and AGGREGATED_DELTA_GRPC types") and one service.
Each entry of config_sources needs an authority, and may list it once ("is configured more
than once").

hds_config and load_stats_config follow the same rules as ads_config. Envoy checks them
late: --mode validate accepts them, and a running Envoy logs "Skipping initialization",
shuts down, and exits with status 0. An access log of the admin interface that needs a
cluster (gRPC, HTTP or fluentd) crashes Envoy, because no cluster exists yet.`,
	Checks: []diag.Check{
		{Name: "admin-access-log-cluster", Summary: "The access log of the admin interface needs a cluster."},
		{Name: "authority-duplicate", Summary: "A config source for xdstp names lists an authority twice."},
		{Name: "authority-missing", Summary: "An entry of config_sources has no authority."},
		{Name: "authority-source-type", Summary: "A config source for xdstp names is not an aggregated gRPC one."},
		{Name: "client-not-grpc", Summary: "ads_config, hds_config or load_stats_config is not gRPC."},
		{Name: "grpc-service-count", Summary: "A config source does not have exactly one gRPC service."},
		{Name: "heap-without-size", Summary: "A fixed heap has no size."},
		{Name: "lds-locator-scheme", Summary: "lds_resources_locator does not begin with xdstp: or file:."},
		{Name: "overload-thresholds", Summary: "scaling_threshold is not below saturation_threshold."},
		{Name: "reduce-timeouts-config", Summary: "reduce_timeouts has no typed_config."},
		{Name: "resource-monitor-duplicate", Summary: "A resource monitor appears twice."},
		{Name: "runtime-layer-duplicate", Summary: "Two runtime layers have one name."},
		{Name: "second-admin-layer", Summary: "There are two admin layers."},
		{Name: "stats-flush-twice", Summary: "Both stats_flush_interval and stats_flush_on_admin are set."},
		{Name: "two-watchdogs", Summary: "Both watchdog and watchdogs are set."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.accesslog.v3.AccessLog",
		"envoy.config.bootstrap.v3.Bootstrap",
		"envoy.config.bootstrap.v3.LayeredRuntime",
		"envoy.config.overload.v3.OverloadManager",
		"envoy.config.overload.v3.ScaledTrigger",
		"envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		report := func(check validate.CheckName, at xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(at), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *accesslogv3.AccessLog:
			if n.Field() == "envoy.config.bootstrap.v3.Admin.access_log" && callsCluster(m) {
				report("admin-access-log-cluster", "", "the access log of the admin interface needs a cluster: "+
					"Envoy crashes", "use a file or stdout access log")
			}
		case *bootstrapv3.Bootstrap:
			checkBootstrap(m, report)
			checkAuthorities(m, report)
			checkLateClients(m, report)
		case *bootstrapv3.LayeredRuntime:
			checkLayers(m, report)
		case *overloadv3.OverloadManager:
			checkOverload(m, report)
		case *overloadv3.ScaledTrigger:
			if m.GetScalingThreshold() >= m.GetSaturationThreshold() {
				report("overload-thresholds", "saturation_threshold", fmt.Sprintf("saturation_threshold %v is not above "+
					"scaling_threshold %v", m.GetSaturationThreshold(), m.GetScalingThreshold()), "set scaling_threshold below saturation_threshold")
			}
		case *heapv3.FixedHeapConfig:
			if m.GetMaxHeapSizeBytes() == 0 {
				report("heap-without-size", "max_heap_size_bytes", "max_heap_size_bytes is 0", "set max_heap_size_bytes to the largest heap size")
			}
		}
	},
}

// optionReporter reports a fault that a check finds. at is the path below the judged message.
type optionReporter func(check validate.CheckName, at xds.Path, message, help string)

var locatorScheme = regexp.MustCompile(`^(?:xdstp|http|file):`)

func checkBootstrap(b *bootstrapv3.Bootstrap, report optionReporter) {
	if b.GetWatchdog() != nil && b.GetWatchdogs() != nil {
		report("two-watchdogs", "watchdog", "both watchdog and watchdogs are set", "keep watchdogs")
	}
	if b.GetStatsFlushInterval() != nil && b.GetStatsFlushOnAdmin() {
		report("stats-flush-twice", "stats_flush_interval", "both stats_flush_interval and stats_flush_on_admin are set", "keep one of them")
	}
	dynamic := b.GetDynamicResources()
	if ads := dynamic.GetAdsConfig(); ads != nil {
		checkClient("dynamic_resources.ads_config", ads, "", report)
	}
	if locator := dynamic.GetLdsResourcesLocator(); locator != "" && !locatorScheme.MatchString(locator) {
		report("lds-locator-scheme", "dynamic_resources.lds_resources_locator", fmt.Sprintf("lds_resources_locator %q does not "+
			"begin with xdstp: or file:", locator), "write xdstp://AUTHORITY/envoy.config.listener.v3.Listener/…")
	}
}

// checkClient checks a gRPC client that the bootstrap configures. consequence is the end of the message.
func checkClient(at xds.Path, api *corev3.ApiConfigSource, consequence string, report optionReporter) {
	field := at[strings.LastIndexByte(string(at), '.')+1:]
	switch t := api.GetApiType(); {
	case t != corev3.ApiConfigSource_GRPC && t != corev3.ApiConfigSource_DELTA_GRPC:
		report("client-not-grpc", at.Field("api_type"), fmt.Sprintf("%s of type %s%s", field, t, consequence), "write GRPC or DELTA_GRPC")
	default:
		checkServices(at, api, consequence, report)
	}
}

func checkServices(at xds.Path, api *corev3.ApiConfigSource, consequence string, report optionReporter) {
	switch count := len(api.GetGrpcServices()); {
	case len(api.GetClusterNames()) > 0:
		report("grpc-service-count", at.Field("cluster_names"), "a gRPC config source can't have "+
			"cluster_names"+consequence, "name the cluster in grpc_services")
	case count != 1:
		report("grpc-service-count", at.Field("grpc_services"), fmt.Sprintf("a gRPC config source needs one gRPC service, "+
			"and has %d%s", count, consequence), "list exactly one in grpc_services")
	}
}

// checkLateClients checks the clients that Envoy creates after the clusters.
func checkLateClients(b *bootstrapv3.Bootstrap, report optionReporter) {
	const consequence = ": Envoy shuts down when it starts"
	if hds := b.GetHdsConfig(); hds != nil {
		checkClient("hds_config", hds, consequence, report)
	}
	if lrs := b.GetClusterManager().GetLoadStatsConfig(); lrs != nil {
		checkClient("cluster_manager.load_stats_config", lrs, consequence, report)
	}
}

// checkAuthorities checks the config sources for xdstp names.
func checkAuthorities(b *bootstrapv3.Bootstrap, report optionReporter) {
	if b.GetDefaultConfigSource() != nil {
		checkAuthority("default_config_source", b.GetDefaultConfigSource(), report)
	}
	for i, source := range b.GetConfigSources() {
		at := xds.Path("config_sources").Index(i)
		if source.GetApiConfigSource() != nil && len(source.GetAuthorities()) == 0 {
			report("authority-missing", at, "the entry of config_sources has "+
				"no authority", "add the authority of its xdstp names, or move it to default_config_source")
		}
		checkAuthority(at, source, report)
	}
}

func checkAuthority(at xds.Path, source *corev3.ConfigSource, report optionReporter) {
	api := source.GetApiConfigSource()
	switch t := api.GetApiType(); {
	case api == nil:
		report("authority-source-type", at, "a config source for xdstp names must be an api_config_source", "write api_config_source, or remove the entry")
	case t != corev3.ApiConfigSource_AGGREGATED_GRPC && t != corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		report("authority-source-type", at.Field("api_config_source").Field("api_type"), fmt.Sprintf("a config source for xdstp "+
			"names can't have the type %s", t), "write AGGREGATED_GRPC or AGGREGATED_DELTA_GRPC")
	default:
		checkServices(at.Field("api_config_source"), api, "", report)
	}
	names := make(map[string]bool)
	for i, authority := range source.GetAuthorities() {
		if names[authority.GetName()] {
			report("authority-duplicate", at.Field("authorities").Index(i).Field("name"),
				fmt.Sprintf("duplicate authority %q", authority.GetName()), "keep one of them")
		}
		names[authority.GetName()] = true
	}
}

// callsCluster reports whether an access log is sent to a cluster.
func callsCluster(m *accesslogv3.AccessLog) bool {
	switch m.GetTypedConfig().MessageName() {
	case "envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig",
		"envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig",
		"envoy.extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig",
		"envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig":
		return true
	}
	return false
}

func checkLayers(m *bootstrapv3.LayeredRuntime, report optionReporter) {
	names := make(map[string]bool)
	admin := false
	for i, layer := range m.GetLayers() {
		at := xds.Path("layers").Index(i)
		if names[layer.GetName()] {
			report("runtime-layer-duplicate", at.Field("name"), fmt.Sprintf("duplicate runtime layer %q", layer.GetName()), "give each layer a name of its own")
		}
		names[layer.GetName()] = true
		if layer.GetAdminLayer() != nil {
			if admin {
				report("second-admin-layer", at.Field("admin_layer"), "a second admin layer", "keep one of them")
			}
			admin = true
		}
	}
}

func checkOverload(m *overloadv3.OverloadManager, report optionReporter) {
	names := make(map[string]bool)
	for i, monitor := range m.GetResourceMonitors() {
		if names[monitor.GetName()] {
			report("resource-monitor-duplicate", xds.Path("resource_monitors").Index(i).Field("name"),
				fmt.Sprintf("duplicate resource monitor %q", monitor.GetName()), "keep one of them")
		}
		names[monitor.GetName()] = true
	}
	for i, action := range m.GetActions() {
		if action.GetName() == "envoy.overload_actions.reduce_timeouts" && action.GetTypedConfig() == nil {
			report("reduce-timeouts-config", xds.Path("actions").Index(i), "reduce_timeouts has no "+
				"typed_config", "add a typed_config of type envoy.config.overload.v3.ScaleTimersOverloadActionConfig")
		}
	}
}
