package envoy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkStatistics reads the statistics of many route configurations. The second benchmark has hostile names
// with many dots, after each of which an asked suffix could begin.
func BenchmarkStatistics(b *testing.B) {
	type stat struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
	run := func(name string, n int, stats []stat, roots []string) {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			text, err := json.Marshal(map[string]any{"stats": stats})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				got, err := parseStats(b.Context(), text)
				if err != nil {
					b.Fatal(err)
				}
				if err := new(Observation).take("", got, roots); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/unit")
		})
	}
	for _, n := range []int{1_000, 2_000, 4_000, 8_000} {
		var stats []stat
		var roots []string
		for i := range n {
			name := fmt.Sprintf("web-%d.example", i)
			roots = append(roots, RDS(Any, name))
			for _, suffix := range suffixes {
				stats = append(stats, stat{RDS("edge", name) + suffix, i})
			}
		}
		run("routes", n, stats, roots)
	}
	for _, n := range []int{15_000, 30_000, 60_000} {
		run("dots", n, []stat{{"http." + strings.Repeat(".", n) + attempts, 1}}, []string{RDS(Any, "x"), RDS(Any, "a.b.c")})
	}
}
