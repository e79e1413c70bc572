package envoy

import "strings"

// A stat prefix is the beginning of the names of a subscription's statistics. A dot follows, and update_attempt,
// update_success, update_rejected, update_failure or version_text.

// Any stands for any text in a stat prefix: for the unknown stat_prefix of a connection manager, or an unknown kind
// of filter. No name contains Any, since names are UTF-8.
const Any = "\xff"

// CDS returns the stat prefix of the clusters.
func CDS() string { return "cluster_manager.cds" }

// LDS returns the stat prefix of the listeners.
func LDS() string { return "listener_manager.lds" }

// RTDS returns the stat prefix that all runtime layers share.
func RTDS() string { return "runtime" }

// EDS returns the stat prefix of a cluster's endpoints. statName is the alt_stat_name of the cluster, or its name
// if alt_stat_name is empty.
func EDS(statName string) string { return clean("cluster." + statName) }

// RDS returns the stat prefix of a route configuration; statPrefix is the stat_prefix of the
// connection manager.
func RDS(statPrefix, name string) string { return clean("http." + statPrefix + ".rds." + name) }

// SRDS returns the stat prefix of the scopes of a connection manager. name is the name in its scoped_routes.
func SRDS(statPrefix, name string) string {
	return clean("http." + statPrefix + ".scoped_rds." + name)
}

// SDS returns the stat prefix of a secret.
func SDS(name string) string { return clean("sds." + name) }

// ECDS returns the stat prefix of a filter's configuration. kind is Envoy's word for the
// kind of filter, such as http_filter or tcp_listener_filter.
func ECDS(kind, name string) string {
	return clean("extension_config_discovery." + kind + "." + name)
}

// clean returns a stat prefix as Envoy writes it. Envoy removes all dots at the end: the
// clusters "." and ".." have the stat prefix "cluster".
func clean(name string) string {
	return strings.TrimRight(strings.NewReplacer("://", "_", ":/", "_", ":", "_", "\x00", "_").Replace(name), ".")
}
