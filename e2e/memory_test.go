package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// TestMemory edits a tree again and again, while a server and a watch read the tree, and clients of all kinds
// follow the server, refuse responses, read late and connect again. In the end, neither process may hold more than
// after a fifth of the time.
//
// XDSPUB_MEMORY is the length of the test, such as 30m.
func TestMemory(t *testing.T) {
	length, seed := dice(t, "XDSPUB_MEMORY", time.Second, 1)
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v memory", seed, length)
	random := rand.New(rand.NewPCG(seed, 0))
	tree := serveTree(t, nil)
	write := func(n int) {
		staged := filepath.Join(filepath.Dir(tree.src), "staged")
		for name, text := range editedFiles(n) {
			if err := os.WriteFile(staged, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(staged, filepath.Join(tree.src, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(tree.src, 0o755); err != nil {
		t.Fatal(err)
	}
	write(0)
	web := address(envoytest.FreePort(t))
	flags := []string{"--quiet-period", "1ms", "--trim-delay", "100ms"}
	server := start(t, binary, append([]string{"serve", "--grpc", "unix:" + tree.socket, "--http", web, tree.src}, flags...)...)
	watch := start(t, binary, append([]string{"watch", "--out", filepath.Join(filepath.Dir(tree.src), "out"), "--step-gap", "0s", tree.src}, flags...)...)
	server.WaitLog(t, "event=published ")
	watch.WaitLog(t, "event=published ")

	names := map[*xds.Type][]string{xds.Endpoints: {"web"}, xds.RouteConfiguration: {"r"}, xds.Secret: {"key"}}
	var followers []*follower
	for _, k := range transports {
		for range 3 {
			f := startFollower(t, rand.New(rand.NewPCG(random.Uint64(), 0)), k, tree.socket, names)
			f.refuse(random.IntN(3) == 0)
			followers = append(followers, f)
		}
	}
	more := startOthers(t, tree.socket, web)

	type holdings struct {
		server, watch    usage
		heap, goroutines float64
	}
	held := func() (least holdings) {
		// The garbage collector runs at any time, so the least of several measurements counts.
		for n := range 20 {
			now := holdings{usageOf(t, server), usageOf(t, watch), metricOf(t, web, "go_memstats_heap_alloc_bytes"), metricOf(t, web, "go_goroutines")}
			if n == 0 {
				least = now
			}
			least.heap, least.goroutines = min(least.heap, now.heap), min(least.goroutines, now.goroutines)
			for _, of := range []struct{ least, now *usage }{{&least.server, &now.server}, {&least.watch, &now.watch}} {
				of.least.memory, of.least.descriptors, of.least.threads = min(of.least.memory, of.now.memory), min(of.least.descriptors, of.now.descriptors), min(of.least.threads, of.now.threads)
			}
			time.Sleep(50 * time.Millisecond)
		}
		return least
	}
	var first holdings
	began, edits := time.Now(), 0
	for time.Since(began) < length {
		edits++
		write(edits)
		server.WaitLog(t, "event=published ")
		watch.WaitLog(t, "event=published ")
		switch f := followers[random.IntN(len(followers))]; random.IntN(20) {
		case 0:
			f.disconnect()
		case 1:
			f.freeze(true)
		case 2, 3:
			f.freeze(false)
		case 4:
			f.refuse(random.IntN(2) == 0)
		}
		if edits%1000 == 0 {
			t.Logf("%d edits in %v: %+v", edits, time.Since(began).Round(time.Second), held())
		}
		if first.heap == 0 && time.Since(began) > length/5 {
			first = held()
		}
	}
	last := held()
	t.Logf("%d edits, %d polls by REST: at first %+v, in the end %+v", edits, more(), first, last)
	for _, of := range []struct {
		what        string
		first, last float64
		slack       float64
	}{
		{"heap of serve in bytes", first.heap, last.heap, 16 << 20},
		{"goroutines of serve", first.goroutines, last.goroutines, 50},
		{"resident memory of serve in bytes", float64(first.server.memory), float64(last.server.memory), 32 << 20},
		{"resident memory of watch in bytes", float64(first.watch.memory), float64(last.watch.memory), 32 << 20},
		{"descriptors of serve", float64(first.server.descriptors), float64(last.server.descriptors), 10},
		{"descriptors of watch", float64(first.watch.descriptors), float64(last.watch.descriptors), 0},
	} {
		if of.last > of.first+of.slack {
			t.Errorf("%s: %.0f at first, %.0f in the end", of.what, of.first, of.last)
		}
	}
}

// editedFiles returns the n-th edit of a tree, by the names of files. The first edit is the whole tree.
func editedFiles(n int) map[string]string {
	var endpoints []string
	for i := range 300 {
		endpoints = append(endpoints, fmt.Sprintf(`{"endpoint": {"address": {"socket_address": {"address": "10.0.%d.%d", "port_value": %d}}}}`, i/250, i%250, 1+(n+i)%65535))
	}
	const typed = `{"@type": "type.googleapis.com/envoy.config.`
	files := map[string]string{
		"endpoints.json": typed + `endpoint.v3.ClusterLoadAssignment", "cluster_name": "web", "endpoints": [{"lb_endpoints": [` + strings.Join(endpoints, ", ") + `]}]}`,
		"clusters.json": fmt.Sprintf(`[`+typed+`cluster.v3.Cluster", "name": "web", "type": "EDS", "connect_timeout": "%d.%03ds", "eds_cluster_config": {"eds_config": {"ads": {}}}},
			`+typed+`cluster.v3.Cluster", "name": "other-%d", "connect_timeout": "1s"}]`, 1+n/1000, n%1000, n%7),
		"variant.json": fmt.Sprintf(`[%s, %s]`,
			variantOf(n, fmt.Sprintf(`{"constraint": {"key": "n", "value": "%d"}}`, n)), variantOf(n, fmt.Sprintf(`{"not_constraints": {"constraint": {"key": "n", "value": "%d"}}}`, n))),
	}
	if n > 0 { // an edit is one rename, so that it is published once
		name := []string{"endpoints.json", "clusters.json", "variant.json"}[n%3]
		return map[string]string{name: files[name]}
	}
	return files
}

// variantOf returns a variant of a cluster.
func variantOf(n int, constraints string) string {
	return fmt.Sprintf(`{"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "resource_name": {"name": "v", "dynamic_parameter_constraints": %s},
		"resource": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "v", "connect_timeout": "%d.%03ds"}}`, constraints, 1+n/1000, n%1000)
}

// startOthers starts a client with resource locators, a client with several sets of parameters, and REST clients.
// polls returns the number of REST requests so far. The clients end with the test.
func startOthers(t *testing.T, socket, web string) (polls func() int) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for _, sets := range [][]string{{"1"}, {"1", "2", "3"}} {
		var locators []*discoveryv3.ResourceLocator
		for _, n := range sets {
			locators = append(locators, &discoveryv3.ResourceLocator{Name: "v", DynamicParameters: map[string]string{"n": n}})
		}
		running.Go(func() {
			for ctx.Err() == nil {
				followLocated(ctx, socket, locators)
			}
		})
	}
	var mu sync.Mutex
	n := 0
	for client := range 4 {
		running.Go(func() {
			for version := ""; ctx.Err() == nil; {
				version = poll(ctx, web, client, version)
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// followLocated follows as an incremental client with resource locators of clusters, until its stream ends.
func followLocated(ctx context.Context, socket string, locators []*discoveryv3.ResourceLocator) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // then the caller connects again
	defer cancel()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return
	}
	q := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "locates"}, TypeUrl: xds.Cluster.URL(), ResourceLocatorsSubscribe: locators}
	for s.Send(q) == nil {
		r, err := s.Recv()
		if err != nil {
			return
		}
		q = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
	}
}

// poll asks for clusters by REST, and returns the version of the client after the answer.
func poll(ctx context.Context, web string, client int, version string) string {
	body := fmt.Sprintf(`{"node": {"id": "rest-%d"}, "version_info": "%s"}`, client, version)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+web+"/v3/discovery:clusters", strings.NewReader(body))
	if err != nil {
		return version
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return version
	}
	defer a.Body.Close()
	var r struct {
		Version string `json:"version_info"`
	}
	if json.NewDecoder(a.Body).Decode(&r) != nil {
		return version
	}
	return r.Version
}

// metricOf returns the value of a metric without labels.
func metricOf(t *testing.T, web, name string) (value float64) {
	t.Helper()
	a, err := http.Get("http://" + web + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+" ") })
	if i < 0 {
		t.Fatalf("no metric is named %s", name)
	}
	if _, err := fmt.Sscan(strings.TrimPrefix(lines[i], name), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
