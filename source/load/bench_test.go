package load_test

import (
	"fmt"
	"strings"
	"testing"

	"xdspub/source/load"
	"xdspub/tools/sample"
)

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			content := sample.Clusters(n)
			write(b, dir, "cds.yaml", content)
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				result, err := load.New(load.Options{}).Load(b.Context(), dir)
				if err != nil || len(result.Resources()) != n || len(result.Diagnostics) > 0 {
					b.Fatal(err, len(result.Resources()), result.Diagnostics)
				}
			}
		})
	}
}

// BenchmarkLoadAgain loads a tree again in which one file of ten has changed.
func BenchmarkLoadAgain(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range 10 {
				write(b, dir, fmt.Sprintf("cds-%d.yaml", i), sample.Part(0, n/10))
			}
			loader := load.New(load.Options{})
			mustLoad(b, loader, dir)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				write(b, dir, "cds-0.yaml", fmt.Sprintf("# %d\n", i)+sample.Part(0, n/10))
				i++
				if _, err := loader.Load(b.Context(), dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFindings loads a file with a finding in each resource, and prints the findings. Finding the place of
// each must not cost a walk through the whole file.
func BenchmarkFindings(b *testing.B) {
	yaml := strings.ReplaceAll(sample.Clusters(10_000), "type: STATIC", "type: STATC")
	var json strings.Builder
	json.WriteString(`{"resources":[`)
	for i := range 10_000 {
		if i > 0 {
			json.WriteByte(',')
		}
		fmt.Fprintf(&json, `{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"größe-%d","type":"STATC","load_assignment":{"cluster_name":"größe-%d","endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"10.0.0.1","port_value":8080}}}}]}]}}`, i, i)
	}
	json.WriteString("]}")
	var txtpb strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&txtpb, "resources { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: \"größe-%d\" type: STATC } }\n", i)
	}
	for name, content := range map[string]string{"cds.yaml": yaml, "cds.json": json.String(), "cds.txtpb": txtpb.String()} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			write(b, dir, name, content)
			b.ReportAllocs()
			for b.Loop() {
				result, err := load.New(load.Options{}).Load(b.Context(), dir)
				if err != nil || len(result.Diagnostics) != 10_000 {
					b.Fatal(err, len(result.Diagnostics))
				}
				text(b, result)
			}
		})
	}
}
