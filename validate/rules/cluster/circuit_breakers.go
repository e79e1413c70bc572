package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var circuitBreakers = &validate.Rule{
	Code: "circuit-breakers",
	Doc: `Circuit breaker thresholds are duplicate or unsupported.

For each priority Envoy applies the first entry of thresholds and ignores every later one
(a warning). In per_host_thresholds it supports max_connections only ("Unsupported field in
per_host_thresholds").`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.CircuitBreakers"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*clusterv3.CircuitBreakers)
		checkThresholds(p, n.Path().Field("thresholds"), m.GetThresholds())
		path := n.Path().Field("per_host_thresholds")
		for _, i := range checkThresholds(p, path, m.GetPerHostThresholds()) {
			checkPerHost(p, path.Index(i), m.GetPerHostThresholds()[i])
		}
	},
}

// checkThresholds reports each entry with the priority of an earlier entry. It returns the indices of the other
// entries, which Envoy applies.
func checkThresholds(p *validate.Pass, path xds.Path, list []*clusterv3.CircuitBreakers_Thresholds) (count []int) {
	first := make(map[corev3.RoutingPriority]int)
	for i, t := range list {
		earlier, doubled := first[t.GetPriority()]
		if !doubled {
			first[t.GetPriority()] = i
			count = append(count, i)
			continue
		}
		p.Report(validate.Finding{
			Path:    path.Index(i),
			Message: fmt.Sprintf("duplicate thresholds for priority %s: Envoy ignores these", t.GetPriority()),
			Help:    "merge them into the first entry, or set another priority",
			Related: facts.Related(p.Resource, path.Index(earlier), "Envoy applies these"),
			Warning: true,
		})
	}
	return count
}

func checkPerHost(p *validate.Pass, path xds.Path, t *clusterv3.CircuitBreakers_Thresholds) {
	for _, unsupported := range []struct {
		field string
		set   bool
	}{
		{"max_pending_requests", t.GetMaxPendingRequests() != nil},
		{"max_requests", t.GetMaxRequests() != nil},
		{"max_retries", t.GetMaxRetries() != nil},
		{"max_connection_pools", t.GetMaxConnectionPools() != nil},
		{"retry_budget", t.GetRetryBudget() != nil},
	} {
		if unsupported.set {
			p.Report(validate.Finding{
				Path:    path.Field(unsupported.field),
				Message: unsupported.field + " is not supported in per_host_thresholds",
				Help:    "move it to thresholds; per_host_thresholds supports max_connections only",
			})
		}
	}
}
