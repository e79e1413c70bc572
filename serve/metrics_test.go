package serve_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/source/owners"
	"xdspub/tools/promtest"
	"xdspub/watch/control"
	"xdspub/xds"
)

// TestMetricsAreDocumented compares the metrics of a Server and of its Observer with docs/monitoring.md.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\bxdspub_[a-z_]+`)
	documented := metric.FindAllString(string(page), -1)
	s := runSecured(t, func(o *serve.Options) { o.AggregateBy, o.Node = []admit.NodeField{"id"}, &corev3.Node{Id: "edge-1"} })
	s.publish(oneCluster)
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(dial(t, s.tcp, s.config(t, s.ca, "spiffe://test/edge-1")))
	stream, err := client.StreamAggregatedResources(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: &corev3.Node{Id: "edge-1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	everything(s.running)
	var names []string
	described := make(chan *prometheus.Desc)
	go func() {
		s.observer.Registry().Describe(described)
		close(described)
	}()
	for d := range described {
		names = append(names, metric.FindAllString(d.String(), 1)...)
	}
	families, err := s.observer.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		names = append(names, metric.FindAllString(f.GetName(), 1)...)
	}
	for _, name := range names {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/monitoring.md does not name %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(names, name) {
			t.Errorf("docs/monitoring.md names %s, which no Server has", name)
		}
	}
}

// TestPromtool: promtool finds no fault in the metrics of a Server and of its Observer.
func TestPromtool(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(oneCluster)
	everything(s)
	r, err := http.Get("http://" + s.web + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, err)
	}
	promtest.Promtool(t, string(text), "check", "metrics")
}

// everything tells the Observer of a Server a state for which each metric has a value.
func everything(s *running) {
	now := time.Now()
	s.observer.Event(event.Record{Time: now, Event: event.SourceValid{}})
	for _, target := range []string{"", "edge"} {
		s.observer.Tell(target, control.Watch{
			Snapshot: "v0123456789abcde", SnapshotSince: now, Unconfirmed: "no",
			CertificateExpires: now, Inotify: &control.Inotify{Used: 1, Budget: 2}, Notices: control.ByEvents,
			Last:    &control.Reconcile{Began: now, Ended: now, Outcome: control.Published, Stages: []control.Stage{{Name: "read", Seconds: 1}}},
			Running: &control.Reconcile{Began: now}, Refused: &control.Refusal{Since: now, Errors: 1, Part: &control.Part{Held: []owners.Held{{Owner: "a", Since: now}}}}, Waits: &control.Waits{Since: now}, Upstream: &control.Upstream{Since: now}, Store: &control.Store{Rollout: &control.Rollout{State: control.Baking}},
			Trial:       &control.Trial{Until: now},
			EnvoyStates: []control.EnvoyState{{Address: "a", State: control.InSync}},
			Checked: control.Checked{
				Resources: map[string]int{"CDS": 1}, Variants: map[string]int{"CDS": 2},
				Counts: []control.CodeCount{{Code: "unknown-field", Severity: diag.Error, Count: 1}},
			},
		})
	}
}
