package render_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"xdspub/render"
	"xdspub/xds"
)

// read parses a published file in its format.
func read(t *testing.T, f *render.Format, data []byte) *discoveryv3.DiscoveryResponse {
	t.Helper()
	var err error
	var r discoveryv3.DiscoveryResponse
	switch f {
	case render.JSON:
		err = protojson.Unmarshal(data, &r)
	case render.YAML:
		var j []byte
		if j, err = yaml.YAMLToJSONStrict(data); err == nil {
			err = protojson.Unmarshal(j, &r)
		}
	case render.Binary:
		err = proto.Unmarshal(data, &r)
	case render.Text:
		err = prototext.Unmarshal(data, &r)
	default:
		t.Fatalf("how is %s read?", f.Name)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", f.Name, err, data)
	}
	return &r
}

// TestFormatsAgree checks that in each format a file has the same resources, the same version and the same
// folder.
func TestFormatsAgree(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		src := t.TempDir()
		for _, f := range a.Files {
			if below, ok := strings.CutPrefix(f.Name, "src/"); ok {
				write(t, filepath.Join(src, below), f.Data)
			}
		}
		s := snapshot(t, src)
		var r render.Renderer // a Renderer must not keep anything of a format for the next
		want, list := r.Render(t.Context(), s, render.Target{EnvoyPath: "/xds"})
		if list.HasErrors() {
			continue // the tree has errors
		}
		for _, format := range render.Formats {
			t.Run(fmt.Sprintf("%s/%s", filepath.Base(name), format.Name), func(t *testing.T) {
				got, list := r.Render(t.Context(), s, render.Target{EnvoyPath: "/xds", Format: format})
				if list.HasErrors() {
					if format != render.YAML || list[0].Code != "number-in-yaml" {
						t.Error(list)
					}
					return
				}
				if len(got.Files) != len(want.Files) || len(got.Watches) != len(want.Watches) {
					t.Fatalf("%d files and %d watches, json has %d and %d", len(got.Files), len(got.Watches), len(want.Files), len(want.Watches))
				}
				for i, f := range got.Files {
					w := want.Files[i]
					if f.Path != strings.TrimSuffix(w.Path, "json")+format.Name {
						t.Errorf("%s is named %s", w.Path, f.Path)
					}
					response := read(t, format, f.Data)
					if response.GetVersionInfo() != f.Version || response.GetTypeUrl() != f.Type.URL() || f.Secret != w.Secret {
						t.Errorf("%s: version %q of %q, secret %t; want %q of %q, %t", f.Path, response.GetVersionInfo(), response.GetTypeUrl(), f.Secret, f.Version, f.Type.URL(), w.Secret)
					}
					// Paths in config sources have the suffix of the format.
					same := bound.ReplaceAll(w.Data, []byte("${1}."+format.Name+`"`))
					if diff := cmp.Diff(canonical(t, read(t, render.JSON, same)), canonical(t, response)); diff != "" {
						t.Errorf("%s (-json +%s):\n%s", f.Path, format.Name, diff)
					}
				}
			})
		}
	}
}

// bound matches the path of a bound config source.
var bound = regexp.MustCompile(`("/xds/[^"]*)\.json"`)

// canonical returns the resources of a response in canonical form.
func canonical(t *testing.T, r *discoveryv3.DiscoveryResponse) []string {
	t.Helper()
	var list []string
	for _, a := range r.GetResources() {
		m, err := a.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, marshal(t, m))
	}
	return list
}

func marshal(t *testing.T, m proto.Message) string {
	t.Helper()
	b, err := xds.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzYAML checks that YAML readers get every text back, as a key and as a value.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{"", "yes", "~", "1e3", "<<", " a ", "a\nb", "\x00\u0085\u2028\ufeff\U000e0001", "\"\\", "# a: - b", strings.Repeat("k", 2000)} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return
		}
		fields, err := structpb.NewStruct(map[string]any{key: value, "list": []any{value, []any{}, map[string]any{key: map[string]any{value: []any{key}}}}})
		if err != nil {
			t.Fatal(err)
		}
		cluster := &clusterv3.Cluster{Name: "web", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{key: fields}}}
		resource, err := xds.NewResource(cluster, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, list := (&render.Renderer{}).Render(t.Context(), xds.NewSnapshot([]*xds.Resource{resource}), render.Target{EnvoyPath: "/xds", Format: render.YAML})
		if list.HasErrors() {
			t.Fatal(list)
		}
		response := read(t, render.YAML, out.Files[0].Data)
		if diff := cmp.Diff([]string{marshal(t, cluster)}, canonical(t, response)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, out.Files[0].Data)
		}
	})
}
