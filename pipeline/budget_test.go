package pipeline

import (
	"fmt"
	"strings"
	"testing"
)

// edsClusters are n EDS clusters with their endpoints, one file. config stands for
// further fields of each cluster.
func edsClusters(prefix string, n int, config string) string {
	var documents []string
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		documents = append(documents, strings.Replace(strings.ReplaceAll(blue, "blue", name), "}", config+"}", 1), strings.ReplaceAll(blueEndpoints, "blue", name))
	}
	return tree(documents...)
}

func (s *site) wantMode(what, want string) {
	s.t.Helper()
	if got := s.plan().Change.Manifest.EDSMode; got != want {
		s.t.Errorf("%s: mode %q, want %q", what, got, want)
	}
}

// TestBudgetOfWhatGoes: a cluster that waits for its trim counts, and the file that
// it reads does not count beside it.
func TestBudgetOfWhatGoes(t *testing.T) {
	s := newSite(t, nil)
	s.tree(edsClusters("a", 110, ""))
	s.publish()
	s.tree(edsClusters("a", 100, ""))
	s.publish()
	s.wantMode("100 clusters, and 10 that go", "file")
	s.tree(edsClusters("b", 9, ""))
	s.wantMode("9 clusters, and 110 that go", "inline")

	// The old clusters are by file still, and leave in their time.
	s = newSite(t, nil)
	s.tree(edsClusters("a", 70, ""))
	s.publish()
	s.tree(edsClusters("b", 70, ""))
	s.publish()
	s.wantMode("70 clusters, and 70 that go", "inline")
	s.now = s.now.Add(s.p.options.TrimDelay)
	s.publish()
	if got := len(s.clusters()); got != 70 {
		t.Errorf("%d clusters are left, want 70", got)
	}
}

// TestBudgetOfWhatGetsWarm: a cluster with health checks that changes runs until
// the new one is warm, and both subscribe. Any other is replaced at once.
func TestBudgetOfWhatGetsWarm(t *testing.T) {
	const checks = ", health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]"
	for _, test := range []struct{ config, want string }{
		{"", "file"},
		{checks, "inline"},
		{`, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: ca, sds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: sds, stat_prefix: sds}}]}}}}}}`, "inline"},
	} {
		s := newSite(t, nil)
		s.tree(edsClusters("a", 70, test.config))
		s.publish()
		s.wantMode("nothing changed"+test.config, "file")
		s.tree(edsClusters("a", 70, test.config+", connect_timeout: 3s"))
		s.wantMode("all changed"+test.config, test.want)
	}
}
