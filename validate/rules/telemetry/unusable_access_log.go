package telemetry

import (
	"fmt"

	accesslogdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	processratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/process_ratelimit/v3"
	otellogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	statslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	otelv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var unusableAccessLog = &validate.Rule{
	Code:     "unusable-access-log",
	Severity: diag.Error,
	Doc: `An access logger has missing or conflicting settings.

Envoy rejects an OpenTelemetry access logger without a collector or with several ("can only
have one transport configured"), and a body or attributes with anything but strings, lists and
maps of them ("Only string values, nested key value lists and array values are supported").

A stats logger needs exactly one of stat_prefix and stats_scope; each counter and gauge
exactly one of value_format and value_fixed; each gauge exactly one operation, with different
access log types. The process_ratelimit filter needs dynamic_config.`,
	Checks: []diag.Check{
		{Name: "collector", Summary: "An OpenTelemetry access logger does not have exactly one collector."},
		{Name: "dynamic-config", Summary: "A process_ratelimit filter has no dynamic_config."},
		{Name: "gauge-operation", Summary: "A gauge needs exactly one operation with its log types."},
		{Name: "stats-scope", Summary: "A stats logger does not have exactly one of stat_prefix and stats_scope."},
		{Name: "stats-value", Summary: "A counter or gauge does not have exactly one value."},
		{Name: "value-type", Summary: "A body or an attribute is not a string, list or map."},
	},
	Messages: []protoreflect.FullName{
		"envoy.extensions.access_loggers.filters.process_ratelimit.v3.ProcessRateLimitFilter",
		"envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig",
		"envoy.extensions.access_loggers.stats.v3.Config",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		report := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *otellogv3.OpenTelemetryAccessLogConfig:
			checkOtelTransport(m, report)
			if m.GetBody().GetValue() != nil {
				checkOtelValue("body", m.GetBody(), report)
			}
			checkOtelValues("attributes", m.GetAttributes(), report)
		case *statslogv3.Config:
			checkStatsLogger(m, report)
		case *processratelimitv3.ProcessRateLimitFilter:
			if m.GetDynamicConfig() == nil {
				report("dynamic-config", "", "dynamic_config is missing", "add dynamic_config, the source of the token bucket")
			}
		}
	},
}

// reporting reports a finding. path is the path below the judged message.
type reporting func(check validate.CheckName, path xds.Path, message, help string)

func checkOtelTransport(m *otellogv3.OpenTelemetryAccessLogConfig, report reporting) {
	var given []xds.Path
	if m.GetCommonConfig() != nil {
		given = append(given, "common_config")
	}
	if m.GetHttpService() != nil {
		given = append(given, "http_service")
	}
	if m.GetGrpcService() != nil {
		given = append(given, "grpc_service")
	}
	const help = "set exactly one of grpc_service and http_service"
	switch {
	case len(given) == 0:
		report("collector", "", "the access logger has no collector", help)
	case len(given) > 1:
		report("collector", given[0], fmt.Sprintf("the access logger has %d collectors: both %s and %s are set", len(given), given[0], given[1]), help)
	}
}

func checkOtelValue(path xds.Path, v *otelv1.AnyValue, report reporting) {
	switch value := v.GetValue().(type) {
	case *otelv1.AnyValue_StringValue:
	case *otelv1.AnyValue_ArrayValue:
		for i, element := range value.ArrayValue.GetValues() {
			checkOtelValue(path.Field("array_value").Field("values").Index(i), element, report)
		}
	case *otelv1.AnyValue_KvlistValue:
		checkOtelValues(path.Field("kvlist_value"), value.KvlistValue, report)
	default:
		report("value-type", path, "the value is not a string, list or map", "write it as string_value")
	}
}

func checkOtelValues(path xds.Path, list *otelv1.KeyValueList, report reporting) {
	for i, entry := range list.GetValues() {
		checkOtelValue(path.Field("values").Index(i).Field("value"), entry.GetValue(), report)
	}
}

func checkStatsLogger(m *statslogv3.Config, report reporting) {
	switch prefix := m.GetStatPrefix() != ""; {
	case prefix && m.GetStatsScope() != nil:
		report("stats-scope", "stats_scope", "both stats_scope and stat_prefix are set", "keep stats_scope")
	case !prefix && m.GetStatsScope() == nil:
		report("stats-scope", "", "the access logger has no stats_scope", "add one; it may be empty")
	}
	for i, c := range m.GetCounters() {
		checkStatsValue(xds.Path("counters").Index(i), c, report)
	}
	for i, g := range m.GetGauges() {
		path := xds.Path("gauges").Index(i)
		checkStatsValue(path, g, report)
		checkGauge(path, g, report)
	}
}

// measured is implemented by counters and gauges.
type measured interface {
	GetValueFormat() string
	GetValueFixed() *wrapperspb.UInt64Value
}

func checkStatsValue(path xds.Path, m measured, report reporting) {
	switch format, fixed := m.GetValueFormat() != "", m.GetValueFixed() != nil; {
	case format && fixed:
		report("stats-value", path.Field("value_fixed"), "both value_fixed and value_format are set", "keep one of them")
	case !format && !fixed:
		report("stats-value", path, "neither value_format nor value_fixed is set", "set one of them; value_fixed: 1 counts requests")
	}
}

func checkGauge(path xds.Path, g *statslogv3.Config_Gauge, report reporting) {
	const never = accesslogdatav3.AccessLogType_NotSet
	set, pair := g.GetSet(), g.GetAddSubtract()
	switch {
	case set == nil && pair == nil:
		report("gauge-operation", path, "the gauge has no operation", "add set or add_subtract")
	case set != nil && pair != nil:
		report("gauge-operation", path.Field("set"), "both set and add_subtract are set", "keep one of them")
	case set != nil && set.GetLogType() == never:
		report("gauge-operation", path.Field("set").Field("log_type"), "the log type is not set", "write one, such as DownstreamEnd")
	case pair != nil && (pair.GetAddLogType() == never || pair.GetSubLogType() == never):
		report("gauge-operation", path.Field("add_subtract"), "a log type is not set", "set both, such as add_log_type: "+
			"DownstreamStart and sub_log_type: DownstreamEnd")
	case pair != nil && pair.GetAddLogType() == pair.GetSubLogType():
		report("gauge-operation", path.Field("add_subtract").Field("sub_log_type"), fmt.Sprintf("the log type %s both adds "+
			"and subtracts", pair.GetSubLogType()), "write two different log types")
	}
}
