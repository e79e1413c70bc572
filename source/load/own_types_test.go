package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

const exampleTypes = "../../examples/own-types/config/types.binpb"

// TestOwnTypesPositions checks the places of findings in messages of the user's own types, in each format.
func TestOwnTypesPositions(t *testing.T) {
	sets := DescriptorSets{Files: []string{exampleTypes}}
	texts, err := sets.Read()
	if err != nil {
		t.Fatal(err)
	}
	g, err := sets.Registry(texts)
	if err != nil {
		t.Fatal(err)
	}
	for format, tt := range map[string]struct{ text, want string }{
		"yaml": {`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: a
metadata:
  typed_filter_metadata:
    x:
      "@type": type.googleapis.com/acme.v1.Quota
      tenat: shop
      mode: ENFORCED
      limit: {requests: many, window: long}
      service: {envoy_grpc: {cluster: b}}
      api_key: {}
`, `7:7 unknown-field unknown field "tenat"
8:13 unknown-enum-value mode has no value "ENFORCED"
9:25 invalid-value requests must be a whole number, not "many"
9:39 invalid-value window must be a duration, not "long"
10:30 unknown-field unknown field "cluster"
11:16 invalid-value api_key must be text, not an object`},
		"json": {`{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a", "metadata": {"typed_filter_metadata": {"x": {
  "tenat": "", "byPath": {"/": {"request": 1}},
  "@type": "type.googleapis.com/acme.v1.Quota"}}}}`, `2:3 unknown-field unknown field "tenat"
2:33 unknown-field unknown field "request"`},
		"pb_text": {`resources { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: "a" metadata { typed_filter_metadata { key: "x" value {
  [type.googleapis.com/acme.v1.Quota] { tenat: "a" mode: ENFORCED
    limit { requests: "many" } }
} } } } }`, `2:41 unknown-field unknown field "tenat"
2:58 unknown-enum-value mode has no value ENFORCED
3:23 invalid-value requests must be a whole number, not "many"`},
	} {
		t.Run(format, func(t *testing.T) {
			result := AsWritten(Input{Name: "a", Format: format, Data: []byte(tt.text), Envoy: envoyapi.Latest.With(g)})
			var got []string
			for _, d := range result.Diagnostics {
				got = append(got, fmt.Sprintf("%d:%d %s %s", d.Line, d.Column, d.Code, d.Message))
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("the findings are\n%s\nwant\n%s", text, tt.want)
			}
		})
	}
	m := &clusterv3.Cluster{Name: "a", Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"x": {TypeUrl: xds.URLPrefix + "acme.v1.Quota", Value: []byte{0xf8, 0x01, 0x01}}}}}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = proto.Marshal(responseOf(&anypb.Any{TypeUrl: xds.Cluster.URL(), Value: data})); err != nil {
		t.Fatal(err)
	}
	result := AsWritten(Input{Name: "a", Format: "pb", Data: data, Envoy: envoyapi.Latest.With(g)})
	if len(result.Diagnostics) != 1 || !strings.Contains(result.Diagnostics[0].Message, "unknown field number 31 of acme.v1.Quota") {
		t.Errorf("the findings are %v", result.Diagnostics)
	}
}

// TestDescriptorSets checks which files DescriptorSets does not read, by size, kind and place.
func TestDescriptorSets(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse.binpb")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, maxDescriptorSets+1); err != nil {
		t.Fatal(err)
	}
	outside, err := filepath.Abs(exampleTypes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.binpb")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sets DescriptorSets
		want string
	}{
		{DescriptorSets{Files: []string{sparse}}, "more than 33554432 bytes together"},
		{DescriptorSets{Files: []string{"/dev/zero"}}, "not a regular file"},
		{DescriptorSets{Files: []string{outside}, Tree: dir}, "leads out of the source tree"},
		{DescriptorSets{Files: []string{filepath.Join(dir, "link.binpb")}, Tree: dir}, "leads out of the source tree"},
		{DescriptorSets{Files: []string{filepath.Join(dir, "none.binpb")}, Tree: dir}, "no such file"},
	} {
		if _, err := tt.sets.Read(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: the error is %v, want %s", tt.sets, err, tt.want)
		}
	}
}

// FuzzDescriptorSet checks that any bytes are an error, or a descriptor set whose messages can be decoded and
// walked.
func FuzzDescriptorSet(f *testing.F) {
	seed, err := os.ReadFile(exampleTypes)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, []byte(`{"tenant": "a", "byPath": {"a": {"window": "1s"}}}`))
	f.Add([]byte{}, []byte(`{}`))
	f.Fuzz(func(t *testing.T, set, text []byte) {
		g, err := DescriptorSets{Files: []string{"set"}}.Registry([][]byte{set})
		if err != nil || g == nil {
			return
		}
		for _, name := range g.Own() {
			mt, err := g.FindMessageByName(name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			m := mt.New().Interface()
			if (protojson.UnmarshalOptions{Resolver: g, DiscardUnknown: true, AllowPartial: true}).Unmarshal(text, m) != nil {
				continue
			}
			value, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
			if err != nil {
				continue // the text is not UTF-8
			}
			c := &clusterv3.Cluster{Name: "a", Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"x": {TypeUrl: xds.URLPrefix + string(name), Value: value}}}}
			body, err := proto.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			data, err := proto.Marshal(responseOf(&anypb.Any{TypeUrl: xds.Cluster.URL(), Value: body}))
			if err != nil {
				t.Fatal(err)
			}
			result := AsWritten(Input{Name: "a", Format: "pb", Data: data, Envoy: envoyapi.Latest.With(g)})
			for _, r := range result.Resources() {
				if _, err := r.Canonical(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func responseOf(resource *anypb.Any) *discoveryv3.DiscoveryResponse {
	return &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{resource}}
}
