package envoy

import "strings"

// The roots of statistics, below which a subscription has its update_attempt,
// update_success, update_rejected, update_failure and version_text.

// CDS is the root of the clusters.
func CDS() string { return "cluster_manager.cds" }

// LDS is the root of the listeners.
func LDS() string { return "listener_manager.lds" }

// RTDS is the root of all runtime layers together.
func RTDS() string { return "runtime" }

// EDS is the root of a cluster's endpoints. statName is the alt_stat_name of the
// cluster, or else its name.
func EDS(statName string) string { return join("cluster", sanitize(statName)) }

// RDS is the root of a route configuration in a connection manager.
func RDS(statPrefix, name string) string {
	return join("http", sanitize(statPrefix), "rds", sanitize(name))
}

// SRDS is the root of the scopes of a connection manager; name is that of its
// scoped_routes.
func SRDS(statPrefix, name string) string {
	return join("http", sanitize(statPrefix), "scoped_rds", sanitize(name))
}

// SDS is the root of a secret.
func SDS(name string) string { return join("sds", sanitize(name)) }

// ECDS is the root of a filter's configuration. kind is http_filter,
// upstream_http_filter, network_filter, tcp_listener_filter or
// udp_listener_filter.
func ECDS(kind, name string) string {
	return join("extension_config_discovery", kind, sanitize(name))
}

// sanitize is what Envoy makes of a name before it goes into a statistic's.
func sanitize(name string) string {
	name = strings.TrimPrefix(strings.TrimSuffix(name, "."), ".")
	return strings.NewReplacer("://", "_", ":/", "_", ":", "_", "\x00", "_").Replace(name)
}

// join leaves out what is empty, as Envoy does.
func join(parts ...string) string {
	full := parts[:0:0]
	for _, p := range parts {
		if p != "" {
			full = append(full, p)
		}
	}
	return strings.Join(full, ".")
}
