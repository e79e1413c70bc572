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
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// TestMemory edits a tree again and again, while a server and a watch with an Envoy read the tree, and clients of all
// kinds follow the server, refuse responses, read late and connect again. Folders move, readers of the HTTP servers
// come and go, and the processes get SIGHUP. In the end, neither process may hold more memory, goroutines, descriptors
// or inotify watches than after a fifth of the time.
//
// XDSPUB_MEMORY is the length of the test, such as 30m.
func TestMemory(t *testing.T) {
	length, seed := dice(t, "XDSPUB_MEMORY", time.Second, 1)
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v memory", seed, length)
	envoytest.Binary(t)
	random := rand.New(rand.NewPCG(seed, 0))
	tree := serveTree(t, nil)
	if err := os.MkdirAll(filepath.Join(tree.src, "moves-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeEdit(t, tree.src, 0)
	out, admin := filepath.Join(filepath.Dir(tree.src), "out"), address(envoytest.FreePort(t))
	server, watch := heldBy{web: address(envoytest.FreePort(t))}, heldBy{web: address(envoytest.FreePort(t))}
	flags := []string{"--quiet-period", "1ms", "--trim-delay", "100ms", tree.src}
	server.process = start(t, binary, append([]string{"serve", "--grpc", "unix:" + tree.socket, "--http", server.web}, flags...)...)
	watch.process = start(t, binary, append([]string{"watch", "--out", out, "--http", watch.web, "--envoy-admin", "http://" + admin, "--step-gap", "0s"}, flags...)...)
	server.WaitLog(t, "event=published ")
	watch.WaitLog(t, "event=published ")
	bootstrap, stderr, exit := xdspub(t, "bootstrap", "envoy", "--out", out, "--admin", admin)
	if exit != 0 {
		t.Fatal(stderr)
	}
	envoytest.Start(t, envoytest.Options{Bootstrap: []byte(bootstrap)})
	watch.WaitLog(t, "event=envoy-in-sync ")

	names := map[*xds.Type][]string{xds.Endpoints: {"web"}, xds.RouteConfiguration: {"r"}, xds.Secret: {"key"}}
	var followers []*follower
	for _, k := range transports {
		for range 3 {
			f := startFollower(t, rand.New(rand.NewPCG(random.Uint64(), 0)), k, tree.socket, names)
			f.refuse(random.IntN(3) == 0)
			followers = append(followers, f)
		}
	}
	more := startOthers(t, tree.socket, server.web)

	both := []*heldBy{&server, &watch}
	began, edits, measured := time.Now(), 0, false
	for time.Since(began) < length {
		edits++
		writeEdit(t, tree.src, edits)
		for _, p := range both {
			p.WaitLog(t, "event=published ")
			if edits%50 == 0 {
				readEvents(t, p.web)
				p.Signal(t, syscall.SIGHUP)
			}
		}
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
			t.Logf("%d edits in %v: serve %+v, watch %+v", edits, time.Since(began).Round(time.Second), server.measure(t), watch.measure(t))
		}
		if !measured && time.Since(began) > length/5 {
			measured = true
			for _, p := range both {
				p.first = p.measure(t)
			}
		}
	}
	t.Logf("%d edits, %d polls by REST", edits, more())
	server.holdsNoMore(t, "serve", 50, 10) // clients come and go
	watch.holdsNoMore(t, "watch", 5, 4)
}

// heldBy is a process with an HTTP server for operations, and what the process held at first.
type heldBy struct {
	*process
	web   string
	first holdings
}

// holdings are the resources that a process holds.
type holdings struct {
	usage
	watches          int // of inotify
	heap, goroutines float64
}

// measure returns the least holdings of several measurements, because the garbage collector runs at any time.
func (p *heldBy) measure(t *testing.T) (least holdings) {
	t.Helper()
	for n := range 20 {
		now := holdings{usageOf(t, p.process), inotifyWatches(t, p.process), metricOf(t, p.web, "go_memstats_heap_alloc_bytes"), metricOf(t, p.web, "go_goroutines")}
		if n == 0 {
			least = now
		}
		least.memory, least.descriptors, least.threads = min(least.memory, now.memory), min(least.descriptors, now.descriptors), min(least.threads, now.threads)
		least.watches, least.heap, least.goroutines = min(least.watches, now.watches), min(least.heap, now.heap), min(least.goroutines, now.goroutines)
		time.Sleep(50 * time.Millisecond)
	}
	return least
}

// holdsNoMore fails the test if a process holds more than at first. goroutines and descriptors are the numbers that may
// be added.
func (p *heldBy) holdsNoMore(t *testing.T, name string, goroutines, descriptors float64) {
	t.Helper()
	last := p.measure(t)
	t.Logf("%s: at first %+v, in the end %+v", name, p.first, last)
	for _, of := range []struct {
		what        string
		first, last float64
		slack       float64
	}{
		{"heap in bytes", p.first.heap, last.heap, 16 << 20},
		{"resident memory in bytes", float64(p.first.memory), float64(last.memory), 32 << 20},
		{"goroutines", p.first.goroutines, last.goroutines, goroutines},
		{"descriptors", float64(p.first.descriptors), float64(last.descriptors), descriptors},
		{"inotify watches", float64(p.first.watches), float64(last.watches), 0},
	} {
		if of.last > of.first+of.slack {
			t.Errorf("%s of %s: %.0f at first, %.0f in the end", of.what, name, of.first, of.last)
		}
	}
}

// inotifyWatches returns the number of inotify watches of a process; 0 on systems other than Linux.
func inotifyWatches(t *testing.T, p *process) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil { // closed meanwhile
			continue
		}
		n += strings.Count("\n"+string(text), "\ninotify ")
	}
	return n
}

// readEvents reads events of an HTTP server for a moment.
func readEvents(t *testing.T, web string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+web+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := http.DefaultClient.Do(q); err == nil {
		_, _ = io.Copy(io.Discard, a.Body) // until the moment is over
		a.Body.Close()
	}
}

// writeEdit makes the n-th edit of a tree: it moves a folder, and writes the files of the edit.
func writeEdit(t *testing.T, src string, n int) {
	t.Helper()
	if n > 0 {
		if err := os.Rename(filepath.Join(src, fmt.Sprint("moves-", n-1)), filepath.Join(src, fmt.Sprint("moves-", n))); err != nil {
			t.Fatal(err)
		}
	}
	staged := filepath.Join(filepath.Dir(src), "staged")
	for name, text := range editedFiles(n) {
		if err := os.WriteFile(staged, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(staged, filepath.Join(src, name)); err != nil {
			t.Fatal(err)
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
