package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// ledsTree returns a source tree with a cluster whose endpoints come by LEDS, without the endpoints.
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

// TestServedLEDS has an Envoy get the endpoints of a cluster by LEDS, each as a resource. The endpoints change,
// their cluster changes, and the last endpoint is removed and added again. By files, and by state of the world, the
// assignment has the endpoints.
func TestServedLEDS(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	port := envoytest.FreePort(t)
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	s := serveTree(t, ledsTree(port))
	s.write(t, "blue.yaml", ledsEndpoint("blue", blue.Port()))
	s.admin, s.out = envoytest.FreePort(t), filepath.Join(t.TempDir(), "out")
	s.start(t, "--grpc", "unix:"+s.socket, "--allow-removal")
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

// TestServedCollectionTTL has an Envoy count the TTLs of an endpoint of LEDS, and of a cluster and a listener that
// the Envoy asks for by collections. The Envoy rejects no heartbeat, and keeps the resources.
func TestServedCollectionTTL(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	port := envoytest.FreePort(t)
	blue := envoytest.NewUpstream(t, "blue")
	mortal := func(document string) string { return strings.Replace(document, "{", "{ttl: 1s, ", 1) }
	wrapped := func(document string) string {
		return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource: %s}`, document)
	}
	const in, web = "xdstp://prod/envoy.config.listener.v3.Listener/edge/in", "xdstp://prod/envoy.config.cluster.v3.Cluster/edge/web"
	tree := ledsTree(port)
	tree["blue.yaml"] = mortal(ledsEndpoint("blue", blue.Port()))
	tree["listener.yaml"] = mortal(wrapped(listener(in, port, `route_config: {`+hosts(web)+`}`)))
	tree["cluster.yaml"] = mortal(wrapped(document("envoy.config.cluster.v3.Cluster",
		`name: %q, alt_stat_name: web, type: EDS, eds_cluster_config: {service_name: web, eds_config: {ads: {}}}`, web)))
	s := serveTree(t, tree)
	s.start(t, "--grpc", "unix:"+s.socket)
	bootstrap := fmt.Sprintf(`{node: {id: edge, cluster: test}, dynamic_resources: {cds_resources_locator: %q, cds_config: {ads: {}}, lds_resources_locator: %q, lds_config: {ads: {}}}}`,
		strings.TrimSuffix(web, "web")+"*", strings.TrimSuffix(in, "in")+"*")
	for _, k := range transports {
		if k.api != "DELTA_GRPC" {
			continue // Envoy gets LEDS only by the incremental protocol
		}
		t.Run(k.name, func(t *testing.T) {
			envoy := envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, []byte(bootstrap), k)})
			for _, subscription := range []string{"cluster.web.leds", "cluster_manager.cds", "listener_manager.lds"} {
				envoytest.Eventually(t, patience, "five heartbeats of "+subscription, func() (bool, string) {
					n := envoy.Stat(t, subscription+".update_success")
					return n > 5, fmt.Sprint(n)
				})
			}
			if rejected := envoy.Stats(t, `\.update_rejected$`); slices.ContainsFunc(slices.Collect(maps.Values(rejected)), func(n string) bool { return n != "0" }) {
				t.Error(rejected)
			}
			status, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
			if body != "blue" {
				t.Error(status, body, err)
			}
			envoy.Stop(t)
		})
	}
}

// TestServedCollectionNames has an Envoy ask for collections of endpoints by names that xdspub has findings about.
// The Envoy rejects the assignment, dies, or asks for the collection.
func TestServedCollectionNames(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	file := filepath.Join(t.TempDir(), "endpoints.json")
	collection := `{"@type": "type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection", "entries": []}`
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`{"version_info": "1", "resources": [%s]}`, collection)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, finds string
		log         string // the reason why Envoy rejects the assignment, or how Envoy dies; empty if Envoy gets the collection
	}{
		{name: ledsName("*#x"), finds: "error", log: "Unknown fragment component x"},
		{name: "xdstp:a/*", finds: "error", log: "xdstp:// type does not match envoy.config.endpoint.v3.LbEndpoint"},
		{name: "file:///nowhere.json", finds: "error", log: "'/nowhere.json' does not exist"},
		{name: "file://" + file, finds: "error", log: "Caught Segmentation fault"},
		{name: ledsName("*#entry=a"), finds: "warning"},
		{name: ledsName("%zz/*"), finds: "warning"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serveTree(t, map[string]string{"listener.yaml": listener("in", envoytest.FreePort(t), `route_config: {`+hosts("web")+`}`), "xdspub.yaml": "disable: [leds-endpoints, unresolved-reference, xdstp-name]\n"})
			s.start(t, "--grpc", "unix:"+s.socket)
			envoy := envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, []byte("{node: {id: edge, cluster: test}, dynamic_resources: {cds_config: {ads: {}}, lds_config: {ads: {}}}}"), transports[1])})
			text := ledsCluster("1s") + "---\n" + strings.Replace(ledsTree(0)["endpoints.yaml"], ledsName("*"), c.name, 1)
			s.write(t, "web.yaml", text)
			envoytest.Eventually(t, patience, "Envoy has judged the name", func() (bool, string) {
				if c.log != "" {
					log := envoy.Log()
					return strings.Contains(log, c.log), log
				}
				n := envoy.Stat(t, "cluster.web.leds.update_success")
				return n == 1, fmt.Sprint(n)
			})
			if strings.Contains(c.log, "fault") {
				envoy.Wait(t)
			}
			s.write(t, "xdspub.yaml", "disable: [unresolved-reference]\n")
			if stdout, _, _ := xdspub(t, "validate", s.src); !strings.Contains(stdout, ": "+c.finds+": ") {
				t.Error(stdout)
			}
		})
	}
}

// TestServedLEDSWeights has an Envoy with RING_HASH get the endpoints of two collections. xdspub refuses a change
// that raises the weights of one collection and lowers those of the other, because Envoy may crash. Envoy accepts
// the same as two changes, one after another.
func TestServedLEDSWeights(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	const light, heavy = 1, 4294967290
	port := envoytest.FreePort(t)
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	name := func(collection string) string { return strings.Replace(ledsName(collection), "/web/", "/", 1) }
	locality := func(zone string) string {
		return fmt.Sprintf(`{locality: {zone: %s}, leds_cluster_locality_config: {leds_collection_name: %q, leds_config: {ads: {}}}}`, zone, name(zone+"/*"))
	}
	endpoint := func(name string, port int, weight uint32) string {
		return document("envoy.service.discovery.v3.Resource", `name: %q, resource: {"@type": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint, load_balancing_weight: %d, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}`, name, weight, port)
	}
	s := serveTree(t, map[string]string{
		"listener.yaml": listener("in", port, `route_config: {`+hosts("web")+`}`),
		"cluster.yaml":  document("envoy.config.cluster.v3.Cluster", `name: web, type: EDS, lb_policy: RING_HASH`),
		"endpoints.yaml": document("envoy.config.endpoint.v3.ClusterLoadAssignment", `cluster_name: web, endpoints: [%s, %s]`,
			locality("a"), locality("b")),
	})
	weigh := func(a, b uint32) {
		s.write(t, "weights.yaml", endpoint(name("a/blue"), blue.Port(), a)+"---\n"+endpoint(name("b/green"), green.Port(), b))
	}
	weigh(heavy, light)
	s.start(t, "--grpc", "unix:"+s.socket)
	envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, []byte("{node: {id: edge, cluster: test}, dynamic_resources: {cds_config: {ads: {}}, lds_config: {ads: {}}}}"), transports[1])})
	answers := func(want string) {
		t.Helper()
		envoytest.Eventually(t, patience, "requests reach "+want, func() (bool, string) {
			_, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
			return body == want, fmt.Sprint(body, err)
		})
	}
	answers("blue")
	weigh(light, heavy)
	s.server.WaitLog(t, "code=leds-weights-changed ")
	weigh(light, light)
	s.server.WaitLog(t, "event=published ")
	weigh(light, heavy)
	answers("green")
}
