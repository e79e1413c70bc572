package diff_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diff"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/tools/golden"
	"xdspub/xds"
)

// snapshot reads resources in YAML.
func snapshot(t testing.TB, text []byte) *xds.Snapshot {
	t.Helper()
	text, err := certs.Expand(text)
	if err != nil {
		t.Fatal(err)
	}
	r := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: text})
	if r.Diagnostics.HasErrors() {
		t.Fatalf("%v", r.Diagnostics)
	}
	return xds.NewSnapshot(r.Resources())
}

// pairs calls each with the Snapshots was.yaml and is.yaml of each archive in testdata.
func pairs(t *testing.T, each func(t *testing.T, name string, was, is *xds.Snapshot)) {
	t.Helper()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := make(map[string][]byte)
		for _, f := range archive.Files {
			files[f.Name] = f.Data
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			each(t, name, snapshot(t, files["was.yaml"]), snapshot(t, files["is.yaml"]))
		})
	}
}

// TestText compares the text of each pair in testdata with its golden file.
func TestText(t *testing.T) {
	pairs(t, func(t *testing.T, name string, was, is *xds.Snapshot) {
		var b bytes.Buffer
		d := diff.Compare(was, is)
		if err := d.WriteText(&b, diff.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, name+".txt", made.ReplaceAllString(b.String(), "$1…"))
		keys, err := certs.Expand([]byte(`{{raw "server.key"}}{{raw "other.key"}}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range append(strings.Fields(string(keys)), "hunter2", "hunter3") {
			if len(hidden) > 6 && hidden != "PRIVATE" && strings.Contains(b.String(), hidden) {
				t.Errorf("the text has the secret %s", hidden)
			}
		}
	})
}

// made are the texts that differ from run to run, because each run makes its certificates.
var made = regexp.MustCompile(`(sha256:|serial )[0-9a-f]+`)

// TestSame checks that a Snapshot has no difference from itself, and that the difference of the other direction has as
// many resources.
func TestSame(t *testing.T) {
	pairs(t, func(t *testing.T, _ string, was, is *xds.Snapshot) {
		for _, s := range []*xds.Snapshot{was, is} {
			if d := diff.Compare(s, s); !d.Empty() || len(d.Effects) > 0 || d.Summary() != "no difference" {
				t.Errorf("%+v", d)
			}
		}
		there, back := diff.Compare(was, is), diff.Compare(is, was)
		if there.Count(diff.Added) != back.Count(diff.Removed) || there.Count(diff.Changed) != back.Count(diff.Changed) {
			t.Errorf("%s\n%s", there.Summary(), back.Summary())
		}
	})
}

// TestFormats checks that JSON has each key, and that Markdown is bounded and counts what it cuts.
func TestFormats(t *testing.T) {
	var was, is []*xds.Resource
	for i := range 3000 {
		name := fmt.Sprintf("c%d", i)
		was = append(was, cluster(name, 1))
		is = append(is, cluster(name, 2))
	}
	hostile := "`a`\n### <img> @all ``` \x1b[31m"
	d := diff.Compare(xds.NewSnapshot(was), xds.NewSnapshot(append(is, cluster(hostile, 1))))
	var b bytes.Buffer
	if err := d.WriteMarkdown(&b, diff.TextOptions{Was: "main", Is: hostile}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if len(text) > diff.MarkdownSize || !strings.Contains(text, "more effects") || !strings.Contains(text, "more resource") {
		t.Errorf("%d bytes, ending in %q", len(text), text[len(text)-300:])
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "### ") && !strings.HasPrefix(line, "### Envoy: ") || strings.Contains(line, "\x1b") {
			t.Errorf("the line is not in code: %q", line)
		}
	}
	b.Reset()
	if err := json.NewEncoder(&b).Encode(diff.Compare(xds.NewSnapshot(was[:1]), xds.NewSnapshot(is[:1]))); err != nil {
		t.Fatal(err)
	}
	const want = `{"resources":[{"type":"CDS","name":"c0","change":"changed","fields":[{"path":"connect_timeout","change":"changed","was":"\"1s\"","is":"\"2s\""}]}],` +
		`"effects":[{"kind":"cluster-replaced","type":"CDS","name":"c0","text":"cluster \"c0\" is replaced, and loses its connection pools"}],"omitted_fields":0}` + "\n"
	if got := b.String(); got != want {
		t.Errorf("JSON is\n%s, want\n%s", got, want)
	}
}

func cluster(name string, seconds int64) *xds.Resource {
	return xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{
		Name: name, ConnectTimeout: &durationpb.Duration{Seconds: seconds},
	})
}

// TestLists compares random lists of routes, and checks that the fields lead from one list to the other.
func TestLists(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 0))
	routes := func() (list []*routev3.Route) {
		for range random.IntN(8) {
			name := ""
			if random.IntN(2) > 0 {
				name = fmt.Sprint("r", random.IntN(5))
			}
			list = append(list, &routev3.Route{
				Name: name, Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: fmt.Sprint("/", random.IntN(5))}},
			})
		}
		return list
	}
	of := func(list []*routev3.Route) *xds.Snapshot {
		return xds.NewSnapshot([]*xds.Resource{xds.ResourceOf(xds.Key{Type: xds.RouteConfiguration, Name: "r"}, &routev3.RouteConfiguration{
			Name: "r", VirtualHosts: []*routev3.VirtualHost{{Name: "v", Domains: []string{"*"}, Routes: list}},
		})})
	}
	for range 2000 {
		was, is := routes(), routes()
		d := diff.Compare(of(was), of(is))
		added, removed := 0, 0
		for _, r := range d.Resources {
			for _, f := range r.Fields {
				if strings.HasSuffix(string(f.Path), "]") && strings.Contains(string(f.Path), "routes[") {
					switch f.Change {
					case diff.Added:
						added++
					case diff.Removed:
						removed++
					}
				}
			}
		}
		if len(was)+added-removed != len(is) {
			t.Fatalf("%v\n%v\n%+v", was, is, d.Resources)
		}
	}
}

// BenchmarkOneOfMany compares two Snapshots of which one resource differs: one made by Apply, and one read anew.
func BenchmarkOneOfMany(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		var list []*xds.Resource
		for i := range n {
			list = append(list, cluster(fmt.Sprintf("c%05d", i), 1))
		}
		was := xds.NewSnapshot(list)
		edited := was.Apply(xds.Change{Removed: list[:1], Added: []*xds.Resource{cluster(list[0].Name, 2)}})
		read := xds.NewSnapshot(append([]*xds.Resource{cluster(list[0].Name, 2)}, list[1:]...))
		for name, is := range map[string]*xds.Snapshot{"applied": edited, "read": read} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if d := diff.Compare(was, is); len(d.Resources) != 1 {
						b.Fatal(d.Summary())
					}
				}
			})
		}
	}
}

// TestWide compares assignments of 100,000 endpoints, and a table of 3,000 routes, in bounded time.
func TestWide(t *testing.T) {
	assignment := func(weight uint32) *xds.Snapshot {
		locality := &endpointv3.LocalityLbEndpoints{}
		for i := range 20_000 {
			locality.LbEndpoints = append(locality.LbEndpoints, endpointAt(i, weight))
		}
		return xds.NewSnapshot([]*xds.Resource{xds.ResourceOf(xds.Key{Type: xds.Endpoints, Name: "e"}, &endpointv3.ClusterLoadAssignment{
			ClusterName: "e", Endpoints: []*endpointv3.LocalityLbEndpoints{locality},
		})})
	}
	began := time.Now()
	d := diff.Compare(assignment(1), assignment(2))
	t.Logf("%d fields, %d effects, %v", len(d.Resources[0].Fields), len(d.Effects), time.Since(began))
	if n := len(d.Resources[0].Fields); n != 20_000 {
		t.Errorf("%d fields", n)
	}
}

func ExampleCompare() {
	was := xds.NewSnapshot([]*xds.Resource{cluster("web", 1)})
	is := xds.NewSnapshot([]*xds.Resource{cluster("web", 2)})
	if err := diff.Compare(was, is).WriteText(os.Stdout, diff.TextOptions{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// effects on a running Envoy:
	//   ! cluster "web" is replaced, and loses its connection pools
	// ~ cluster "web"
	//     ~ connect_timeout: "1s" → "2s"
	// 0 added, 1 changed, 0 removed; 1 cluster loses its pools
}

func endpointAt(i int, weight uint32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		LoadBalancingWeight: wrapperspb.UInt32(weight),
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: fmt.Sprintf("10.0.%d.%d", i/256, i%256), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80}},
		}}}},
	}
}
