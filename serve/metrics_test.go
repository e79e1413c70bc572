package serve

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"xdspub/serve/listen"
)

// TestMetricsAreDocumented compares the metrics of a Server with docs/serve-security.md.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/serve-security.md")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\bxdspub_[a-z_]+`)
	documented := metric.FindAllString(string(page), -1)
	m := newMetrics()
	m.watch(nil, nil, nil, nil, nil, &listen.Keys{})
	described := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(described)
		close(described)
	}()
	var names []string
	for d := range described {
		names = append(names, metric.FindAllString(d.String(), 1)...)
	}
	if len(names) == 0 {
		t.Fatal("no metric")
	}
	for _, name := range names {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/serve-security.md does not name %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(names, name) {
			t.Errorf("docs/serve-security.md names %s, which no Server has", name)
		}
	}
}
