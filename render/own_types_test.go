package render_test

import (
	"bytes"
	"context"
	"testing"

	"xdspub/envoy/envoyapi"
	"xdspub/render"
	"xdspub/source/load"
	"xdspub/xds"
)

// ownTypes returns a version of Envoys that have the types of the example.
func ownTypes(t *testing.T) *envoyapi.Version {
	t.Helper()
	sets := load.DescriptorSets{Files: []string{"../examples/own-types/config/types.binpb"}}
	texts, err := sets.Read()
	if err != nil {
		t.Fatal(err)
	}
	g, err := sets.Registry(texts)
	if err != nil {
		t.Fatal(err)
	}
	return envoyapi.Latest.With(g)
}

const ownTypesCluster = `
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: shop
metadata:
  typed_filter_metadata:
    a:
      "@type": type.googleapis.com/acme.v1.Quota
      tenant: shop
      mode: DRY_RUN
      limit: {requests: 100, window: 1.5s}
      by_path: {/b: {requests: 2}, /a: {window: 3s}}
      exempt: [one, two]
      service: {envoy_grpc: {cluster_name: quota}, timeout: 1s}
      fallback: {"@type": type.googleapis.com/acme.v1.Quota.Limit, requests: 7}
      labels: {tier: gold, on: true}
      salt: AAEC/w==
      status: 429
    b:
      "@type": type.googleapis.com/xds.type.v3.TypedStruct
      type_url: type.googleapis.com/acme.v1.Quota
      value: {tenant: struct}
`

// TestOwnTypes reads and writes a resource with messages of the user's own types in each format, and checks
// that each file has the same resource.
func TestOwnTypes(t *testing.T) {
	v := ownTypes(t)
	read := func(format string, data []byte) *xds.Resource {
		t.Helper()
		result := load.AsWritten(load.Input{Name: "cluster." + format, Format: format, Data: data, Envoy: v})
		if len(result.Diagnostics) > 0 || len(result.Resources()) != 1 {
			t.Fatalf("%s: %v\n%s", format, result.Diagnostics, data)
		}
		return result.Resources()[0]
	}
	source := read("yaml", []byte(ownTypesCluster))
	want, err := source.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range render.Formats {
		t.Run(format.Name, func(t *testing.T) {
			var first []byte
			r := source
			for range 2 {
				out, list := (&render.Renderer{}).Render(context.Background(), xds.NewSnapshot([]*xds.Resource{r}), render.Target{EnvoyPath: "/xds", Format: format})
				if out == nil {
					t.Fatal(list)
				}
				data := out.Files[0].Data
				if first == nil {
					first = data
				}
				if !bytes.Equal(data, first) {
					t.Errorf("written again it is\n%s\nwant\n%s", data, first)
				}
				r = read(format.Name, data)
				if is, err := r.Canonical(); err != nil || !bytes.Equal(is, want) {
					t.Errorf("it is read as %q, want %q (%v)", is, want, err)
				}
			}
			response, result := load.Response(load.Input{Name: "cds." + format.Name, Format: format.Name, Data: first, Envoy: v})
			if response == nil {
				t.Fatal(result.Diagnostics)
			}
			for _, to := range render.Formats {
				data, list := to.Convert(v.Registry(), response, result.Resources())
				if list.HasErrors() {
					t.Fatal(list)
				}
				if is, err := read(to.Name, data).Canonical(); err != nil || !bytes.Equal(is, want) {
					t.Errorf("converted to %s it is read as %q, want %q (%v)", to.Name, is, want, err)
				}
			}
		})
	}
}
