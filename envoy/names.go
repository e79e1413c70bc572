package envoy

import "strings"

// The roots of statistics, below which a subscription has its update_attempt,
// update_success, update_rejected, update_failure and version_text.

// Any stands for any text in a name: for a stat prefix or a kind of filter that is
// not known. It is in no name, since those are UTF-8.
const Any = "\xff"

// CDS is the root of the clusters.
func CDS() string { return "cluster_manager.cds" }

// LDS is the root of the listeners.
func LDS() string { return "listener_manager.lds" }

// RTDS is the root of all runtime layers together.
func RTDS() string { return "runtime" }

// EDS is the root of a cluster's endpoints. statName is the alt_stat_name of the
// cluster, or else its name.
func EDS(statName string) string { return root("cluster." + statName) }

// RDS is the root of a route configuration in a connection manager.
func RDS(statPrefix, name string) string { return root("http." + statPrefix + ".rds." + name) }

// SRDS is the root of the scopes of a connection manager; name is that of its
// scoped_routes.
func SRDS(statPrefix, name string) string {
	return root("http." + statPrefix + ".scoped_rds." + name)
}

// SDS is the root of a secret.
func SDS(name string) string { return root("sds." + name) }

// ECDS is the root of a filter's configuration. kind is what Envoy calls the place of
// the filter, such as http_filter or tcp_listener_filter.
func ECDS(kind, name string) string {
	return root("extension_config_discovery." + kind + "." + name)
}

// root is what Envoy makes of a name with its prefix. Dots count at the end alone,
// all of them: the clusters "." and ".." have the root "cluster".
func root(name string) string {
	return strings.TrimRight(strings.NewReplacer("://", "_", ":/", "_", ":", "_", "\x00", "_").Replace(name), ".")
}
