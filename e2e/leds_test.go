package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// ledsTree returns a source tree with a cluster whose endpoints come by LEDS, without these.
func ledsTree(port int) map[string]string {
	return map[string]string{
		"listener.yaml": listener("in", port, `route_config: {`+hosts("web")+`}`),
		"cluster.yaml":  ledsCluster("1s"),
		"endpoints.yaml": document("envoy.config.endpoint.v3.ClusterLoadAssignment",
			`cluster_name: web, endpoints: [{locality: {zone: a}, leds_cluster_locality_config: {leds_collection_name: %q, leds_config: {ads: {}}}}]`, ledsName("*")),
	}
}

func ledsCluster(timeout string) string {
	return document("envoy.config.cluster.v3.Cluster", `name: web, type: EDS, connect_timeout: %s, eds_cluster_config: {eds_config: {ads: {}, initial_fetch_timeout: 0s}}`, timeout)
}

func ledsName(endpoint string) string {
	return "xdstp://prod/envoy.config.endpoint.v3.LbEndpoint/web/" + endpoint
}

// ledsEndpoint returns a resource of LEDS on 127.0.0.1.
func ledsEndpoint(name string, port int) string {
	return document("envoy.service.discovery.v3.Resource", `name: %q, resource: {"@type": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}`, ledsName(name), port)
}

// TestServedLEDS has an Envoy get the endpoints of a cluster by LEDS, each as a resource. They change, their cluster
// changes, and the last one goes and comes again. By files, and by state of the world, the endpoints are in their
// assignment.
func TestServedLEDS(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	port := envoytest.FreePort(t)
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	s := serveTree(t, ledsTree(port))
	s.write(t, "blue.yaml", ledsEndpoint("blue", blue.Port()))
	s.admin, s.out = envoytest.FreePort(t), filepath.Join(t.TempDir(), "out")
	s.start(t, "--grpc", "unix:"+s.socket)
	if _, stderr, exit := xdspub(t, "render", "--out", s.out, s.src); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, stderr)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	answers := func(t *testing.T, want string) {
		t.Helper()
		envoytest.Eventually(t, patience, "requests reach "+want, func() (bool, string) {
			status, body, err := envoytest.Get(t, url)
			return body == want || want == "nobody" && status == 503, fmt.Sprint(status, body, err)
		})
	}
	bootstrap := s.bootstrap(t)
	byFiles := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
	answers(t, "blue")
	byFiles.Stop(t)
	for _, k := range transports {
		t.Run(k.name, func(t *testing.T) {
			envoy := envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, bootstrap, k), Args: []string{"--drain-time-s", "1"}})
			answers(t, "blue")
			s.write(t, "blue.yaml", ledsEndpoint("green", green.Port()))
			answers(t, "green")
			s.write(t, "cluster.yaml", ledsCluster("2s"))
			envoytest.Eventually(t, patience, "the changed cluster is warm", func() (bool, string) {
				is := configuration(t, envoy)
				text := strings.Join(is["dynamic_active_clusters"], "")
				return strings.Contains(text, `"2s"`), text
			})
			answers(t, "green")
			s.write(t, "blue.yaml", ledsEndpoint("blue", blue.Port()))
			answers(t, "blue")
			s.remove(t, "blue.yaml")
			answers(t, "nobody")
			s.write(t, "cluster.yaml", ledsCluster("1s"))
			s.write(t, "blue.yaml", ledsEndpoint("blue", blue.Port()))
			answers(t, "blue")
			envoy.Stop(t)
		})
	}
}
