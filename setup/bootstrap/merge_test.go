package bootstrap_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"xdspub/internal/addr"
	"xdspub/setup/bootstrap"
	"xdspub/source/load"
	"xdspub/source/syntax"
)

// options returns options for an Envoy with ADS. Their names are in no other bootstrap.
func options() bootstrap.EnvoyOptions {
	return bootstrap.EnvoyOptions{
		Transport: bootstrap.DeltaAggregated,
		Server:    bootstrap.Server{Address: addr.Address{Network: "tcp", Name: "127.0.0.1:18000"}, Cluster: "the-server"},
		NodeID:    "edge-1", NodeCluster: "edge", Region: "eu", Metadata: map[string]string{"tier": "2"},
		Admin: "127.0.0.1:9901", RuntimeLayers: []bootstrap.RuntimeLayer{{Name: "the-layer"}},
		StatsTags: map[string]string{"the-tag": "on"}, MaxConnections: 100, MaxHeap: 1 << 30,
	}
}

// bootstraps returns the bootstraps of the examples, and of the cases with a verdict of Envoy.
func bootstraps(t *testing.T) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, dir := range []string{"../../examples", "../../tools/agreement/testdata"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if filepath.Base(path) == "envoy.yaml" {
				all[path] = data
			}
			if filepath.Ext(path) == ".txtar" {
				for _, f := range txtar.Parse(data).Files {
					if slices.Contains([]string{"boot.yaml", "bootstrap.yaml", "envoy.yaml"}, f.Name) {
						all[path+"/"+f.Name] = f.Data
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestMergeKeepsAll merges the options into all of these bootstraps. dynamic_resources is a conflict, so the test
// removes this field.
func TestMergeKeepsAll(t *testing.T) {
	merged, conflicts := 0, 0
	for name, text := range bootstraps(t) {
		base, _ := bootstrap.Read(load.Input{Name: name, Format: "yaml", Data: text})
		if base == nil {
			continue // Envoy does not accept this bootstrap
		}
		o := options()
		agree(&o, base.Message)
		_, found, err := base.Merge(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(found) > 0 {
			conflicts++
			if base.Message.GetDynamicResources() == nil {
				t.Errorf("%s: %v", name, found)
			}
			text = without(t, text, "dynamic_resources")
			if base, _ = bootstrap.Read(load.Input{Name: name, Format: "yaml", Data: text}); base == nil {
				continue // nothing else was in the bootstrap
			}
		}
		got, found, err := base.Merge(o)
		if err != nil || len(found) > 0 {
			if len(strings.TrimSpace(string(text))) > 2 {
				t.Errorf("%s: %v %v", name, found, err)
			}
			continue
		}
		merged++
		kept(t, name, base.Message, text, got, o)
	}
	if merged < 5 || conflicts < 3 {
		t.Errorf("%d bootstraps were added to, and %d were in conflict", merged, conflicts)
	}
}

// agree sets options to the values of a bootstrap, as the command does for flags that are not given.
func agree(o *bootstrap.EnvoyOptions, b *bootstrapv3.Bootstrap) {
	if id := b.GetNode().GetId(); id != "" {
		o.NodeID = id
	}
	if cluster := b.GetNode().GetCluster(); cluster != "" {
		o.NodeCluster = cluster
	}
	if b.GetAdmin().GetAddress() != nil {
		o.Admin = ""
	}
}

func without(t *testing.T, text []byte, key string) []byte {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		t.Fatal(err)
	}
	top := n.Content[0]
	for i := 0; i < len(top.Content); i += 2 {
		if top.Content[i].Value == key {
			top.Content = slices.Delete(top.Content, i, i+2)
			break
		}
	}
	text, err := yaml.Marshal(&n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var comment = regexp.MustCompile(`(?m)(?:^|\s)#\s*(\S.*)$`)

// kept compares a bootstrap with the merged bootstrap.
func kept(t *testing.T, name string, was *bootstrapv3.Bootstrap, before, after []byte, o bootstrap.EnvoyOptions) {
	t.Helper()
	result, _ := bootstrap.Read(load.Input{Name: name, Format: "yaml", Data: after})
	if result == nil {
		t.Fatalf("%s became wrong:\n%s", name, after)
	}
	is := proto.CloneOf(result.Message)
	if is.GetStaticResources() != nil {
		is.StaticResources.Clusters = slices.DeleteFunc(is.StaticResources.Clusters, func(c *clusterv3.Cluster) bool { return c.GetName() == o.Server.Cluster })
	}
	// Merge adds to these fields: see TestMerge.
	for _, b := range []*bootstrapv3.Bootstrap{is, was} {
		b.Node, b.DynamicResources, b.LayeredRuntime, b.OverloadManager, b.StatsConfig, b.Admin = nil, nil, nil, nil, nil, nil
	}
	if diff := cmp.Diff(was, is, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-was +is):\n%s", name, diff)
	}
	for _, c := range comment.FindAllStringSubmatch(string(before), -1) {
		if !strings.Contains(string(after), c[1]) {
			t.Errorf("%s: the comment %q is lost", name, c[1])
		}
	}
}

// TestMerge: the settings in a field to which Merge adds stay. A second merge changes nothing.
func TestMerge(t *testing.T) {
	for _, format := range []string{"yaml", "json"} {
		t.Run(format, func(t *testing.T) {
			file := filepath.Join("testdata", "merge."+format)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := options()
			o.Admin, o.NodeID = "", "mine"
			base, result := bootstrap.Read(load.Input{Name: file, Format: format, Data: text})
			if base == nil {
				t.Fatal(result.Diagnostics)
			}
			got, conflicts, err := base.Merge(o)
			if err != nil || len(conflicts) > 0 {
				t.Fatal(conflicts, err)
			}
			golden := filepath.Join("testdata", "merged."+format)
			if want, err := os.ReadFile(golden); err != nil || string(want) != string(got) {
				t.Errorf("%v: got:\n%s\nwant, in %s:\n%s", err, got, golden, want)
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			again, _ := bootstrap.Read(load.Input{Name: golden, Format: format, Data: got})
			if again == nil {
				t.Fatal("the result is wrong")
			}
			if twice, conflicts, err := again.Merge(o); err != nil || string(twice) != string(got) {
				t.Errorf("a second merge: %v %v\n%s", conflicts, err, twice)
			}
		})
	}
}

// TestMergeConflicts: a contradiction is a finding with a place, and Merge returns no text.
func TestMergeConflicts(t *testing.T) {
	for text, want := range map[string]string{
		"node: {id: other}":                                                                   "f.yaml:1:12: error: node.id is set already, to another value",
		"node:\n  cluster: other":                                                             "f.yaml:2:12: error: node.cluster is set already",
		"node: {id: edge-1, locality: {region: us}}":                                          "f.yaml:1:39: error: node.locality.region is set already",
		"node: {id: edge-1, metadata: {tier: 2}}":                                             "f.yaml:1:37: error: node.metadata.tier is set already",
		"admin: {address: {pipe: {path: /a}}}":                                                "f.yaml:1:18: error: admin.address is set already",
		"dynamicResources:\n  cdsConfig: {path_config_source: {path: /a/b}}":                  "f.yaml:2:14: error: dynamic_resources.cds_config is set already",
		"static_resources: {clusters: [{name: a}, {name: the-server}]}":                       `f.yaml:1:42: error: static_resources.clusters has another "the-server" already`,
		"layered_runtime: {layers: [{name: the-layer, static_layer: {}}]}":                    `f.yaml:1:28: error: layered_runtime.layers has another "the-layer" already`,
		"stats_config: {stats_tags: [{tag_name: the-tag, fixed_value: off}]}":                 "",
		"stats_config: {stats_tags: [{tag_name: the-tag, fixed_value: x}]}":                   `f.yaml:1:29: error: stats_config.stats_tags has another "the-tag" already`,
		"overload_manager: {resource_monitors: [{name: envoy.resource_monitors.fixed_heap}]}": `has another "envoy.resource_monitors.fixed_heap" already`,
		"static_resources: {clusters: &c [{name: a}]}\nx: 1":                                  "", // the text is no bootstrap
	} {
		base, result := bootstrap.Read(load.Input{Name: "f.yaml", Format: "yaml", Data: []byte(text)})
		if base == nil {
			if want != "" {
				t.Errorf("%s: %v", text, result.Diagnostics)
			}
			continue
		}
		got, conflicts, err := base.Merge(options())
		if err != nil || got != nil || len(conflicts) != 1 || !strings.Contains(conflicts[0].String(), want) || want == "" {
			t.Errorf("%s: %v %v, want %s\n%s", text, conflicts, err, want, got)
		}
	}
}

// TestFromTooLarge: a file that is larger than a file of a source tree may be is not read.
func TestFromTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, syntax.MaxBytes+1); err != nil { // a sparse file
		t.Fatal(err)
	}
	if in, err := load.Open(path); err == nil || in.Data != nil {
		t.Error(err)
	}
}

// TestMergeJSON: Merge keeps all forms of JSON, even those that YAML writes differently.
func TestMergeJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"node": {"id": "edge-1", "metadata": {"a": "b\/c"}}}`:               `"a": "b/c"`,
		`{"node": {"id": "edge-1", "metadata": {"a": "\ud83d\ude00"}}}`:       `"a": "😀"`,
		"{\"node\": {\"id\": \"edge-1\",\n\t\"metadata\"\n:\t{\"a\": 1e2}}}":  `"a": 1e2`,
		"{\"node\": \n{\"metadata\": {\"ä\": 1}, \"id\": \"other\"}}":         `f.json:2:30: error: node.id is set already`,
		"{\n \"node\": {\"id\": \"edge-1\"}, \"node\": {\"id\": \"edge-1\"}}": `f.json can be read, but not be added to: line 2, column 28: duplicate object member name`,
	} {
		base, result := bootstrap.Read(load.Input{Name: "f.json", Format: "json", Data: []byte(text)})
		if base == nil {
			t.Fatal(result.Diagnostics)
		}
		got, conflicts, err := base.Merge(options())
		if all := fmt.Sprint(string(got), conflicts, err); !strings.Contains(all, want) {
			t.Errorf("%s: %s, want %s", text, all, want)
		}
	}
}

// TestMergeLosesNoDocument: a second YAML document, which Envoy does not read, is an error: Merge does not drop it.
func TestMergeLosesNoDocument(t *testing.T) {
	for _, text := range []string{"node: {id: edge-1}\n---\nnode: {id: b}\n", "node: {id: edge-1}\n---\n# A note.\n"} {
		base, result := bootstrap.Read(load.Input{Name: "f.yaml", Format: "yaml", Data: []byte(text)})
		if base == nil {
			t.Fatal(result.Diagnostics)
		}
		if got, _, err := base.Merge(options()); err == nil || !strings.Contains(err.Error(), "f.yaml has more than one document") {
			t.Errorf("%v:\n%s", err, got)
		}
	}
}
