package reference

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var configSource = &validate.Rule{
	Code:     "config-source",
	Profiles: validate.Envoy,
	Doc: `A config source has missing, conflicting or unsupported fields.

A config source of type GRPC or DELTA_GRPC needs exactly one gRPC service and no cluster_names
("must have no more than 1 gRPC services specified"). Type REST needs exactly one cluster name,
no gRPC service and a refresh_delay ("refresh_delay is required for REST API configuration
sources"). A path has either poll_interval or watched_directory. AGGREGATED_GRPC is for the
bootstrap only ("Unsupported config source"). No Envoy knows self ("Missing config source
specifier"); in a source tree it means this tree. A filter with
apply_default_config_without_warming needs a default_config ("applied without warming but has
no default config").

With watch_modify Envoy reads a file with each write to any file of the watched_directory. If a
program writes the file in place, Envoy reads the first part of the file as the whole: if the part
is valid, Envoy removes the resources of the rest until the program has written them. This is a
warning.`,
	Checks: []diag.Check{
		{Name: "aggregated-type", Summary: "A type AGGREGATED_GRPC stands outside of a bootstrap."},
		{Name: "cluster-names", Summary: "A REST config source needs exactly one cluster name, a gRPC config source none."},
		{Name: "default-config", Summary: "A filter applies a missing default_config."},
		{Name: "grpc-services", Summary: "A gRPC config source needs exactly one service, a REST config source none."},
		{Name: "path-options", Summary: "A path has both poll_interval and watched_directory."},
		{Name: "refresh-delay", Summary: "A config source of type REST has no refresh_delay."},
		{Name: "self-unknown", Summary: "A config source is self, which Envoy does not know."},
		{Name: "watch-modify", Summary: "Envoy reads a file of resources while a program writes the file."},
	},
	Messages: []protoreflect.FullName{"envoy.config.core.v3.ConfigSource", "envoy.config.core.v3.ExtensionConfigSource"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *corev3.ExtensionConfigSource:
			if m.GetApplyDefaultConfigWithoutWarming() && m.GetDefaultConfig() == nil {
				p.Report(validate.Finding{
					Check:   "default-config",
					Path:    n.Path().Field("apply_default_config_without_warming"),
					Message: "apply_default_config_without_warming needs a default_config",
					Help:    "set default_config, or remove this field",
				})
			}
		case *corev3.ConfigSource:
			if m.GetSelf() != nil && p.Snapshot.FromBootstrap() && n.Field() != "envoy.config.cluster.v3.Cluster.lrs_server" {
				p.Report(validate.Finding{
					Check:   "self-unknown",
					Path:    n.Path().Field("self"),
					Message: "Envoy does not know the config source self",
					Help:    "name a file with path_config_source",
				})
			}
			switch n.Field() {
			case "envoy.config.cluster.v3.Cluster.lrs_server": // Envoy never uses it
			case "envoy.config.bootstrap.v3.Bootstrap.config_sources", "envoy.config.bootstrap.v3.Bootstrap.default_config_source":
				// These sources may be aggregated.
			case "envoy.config.route.v3.Vhds.config_source":
				if m.GetApiConfigSource().GetApiType() == corev3.ApiConfigSource_DELTA_GRPC { // vhds-config-source reports other types
					checkAPISource(&p.Pass, n, m.GetApiConfigSource())
				}
			default:
				checkAPISource(&p.Pass, n, m.GetApiConfigSource())
				checkPathSource(&p.Pass, n, m.GetPathConfigSource())
			}
		}
	},
}

func checkPathSource(p *validate.Pass, n *xds.Node, path *corev3.PathConfigSource) {
	at := n.Path().Field("path_config_source")
	switch {
	case path.GetPollInterval() != nil && path.GetWatchedDirectory() != nil:
		p.Report(validate.Finding{
			Check:   "path-options",
			Path:    at.Field("poll_interval"),
			Message: "both poll_interval and watched_directory are set",
			Help:    "keep one of them: Envoy either polls the file or watches the directory",
		})
	case path.GetWatchedDirectory().GetWatchModify():
		p.Report(validate.Finding{
			Check:   "watch-modify",
			Path:    at.Field("watched_directory").Field("watch_modify"),
			Message: "Envoy also reads the file while a program writes the file, and then removes the resources that are not written yet",
			Help:    "remove watch_modify, and rename a finished file into the directory",
			Warning: true,
		})
	}
}

func checkAPISource(p *validate.Pass, n *xds.Node, api *corev3.ApiConfigSource) {
	report := func(check validate.CheckName, field xds.Path, message, help string) {
		p.Report(validate.Finding{Check: check, Path: n.Path().Field("api_config_source").Join(field), Message: message, Help: help})
	}
	switch api.GetApiType() {
	case corev3.ApiConfigSource_AGGREGATED_GRPC, corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		report("aggregated-type", "api_type", fmt.Sprintf("api_type %s is allowed in a "+
			"bootstrap only", api.GetApiType()), "write GRPC or DELTA_GRPC here, or ads: {} for this tree")
	case corev3.ApiConfigSource_GRPC, corev3.ApiConfigSource_DELTA_GRPC:
		switch {
		case len(api.GetClusterNames()) > 0:
			report("cluster-names", "cluster_names", fmt.Sprintf("a config source of type %s can't have "+
				"cluster_names", api.GetApiType()), "name the cluster in grpc_services")
		case len(api.GetGrpcServices()) != 1:
			report("grpc-services", "grpc_services", fmt.Sprintf("a config source of type %s needs one gRPC "+
				"service, and has %d", api.GetApiType(), len(api.GetGrpcServices())), "list exactly one")
		}
	case corev3.ApiConfigSource_REST:
		switch {
		case len(api.GetGrpcServices()) > 0:
			report("grpc-services", "grpc_services", "a config source of type REST can't have gRPC services", "name the cluster in cluster_names")
		case len(api.GetClusterNames()) != 1:
			report("cluster-names", "cluster_names", fmt.Sprintf("a config source of type REST needs one cluster "+
				"name, and has %d", len(api.GetClusterNames())), "list exactly one")
		case api.GetRefreshDelay() == nil:
			report("refresh-delay", "", "a config source of type REST needs refresh_delay", "add the time between two requests, such as refresh_delay: 10s")
		}
	}
}
