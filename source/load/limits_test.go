package load

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/syntax"
)

// TestLimits checks that a small file that would be large in memory is an error before it is parsed, and that a
// long list of resources is no error.
func TestLimits(t *testing.T) {
	const response = "resources:\n"
	one := "- '@type': type.googleapis.com/envoy.service.runtime.v3.Runtime\n  name: a\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a.yaml", strings.Repeat("\n", decode.MaxElements+1), "the file has 20000001 lines, commas and brackets"},
		{"a.json", strings.Repeat("\n", decode.MaxElements+1), "the file has 20000001 lines, commas and brackets"},
		{"a.txtpb", strings.Repeat("\n", decode.MaxElements+1), "the file has 20000001 lines, commas and brackets"},
		{"a.yaml", "- a\n" + strings.Repeat("x: a\n", decode.MaxParsed), "a document of the file has 600001 lines"},
		{"a.yaml", strings.Repeat("- {}\n", decode.MaxParsed/2+1), ""},
		{"a.yaml", "x: [" + strings.Repeat("a,", decode.MaxParsed) + "]\n", "a document of the file has 600002 lines"},
		{"a.yaml", response + strings.Repeat(one, 100), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.name), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			result, err := New(Options{}).Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range result.Diagnostics {
				if d.Code == syntax.CodeTooLarge.Name {
					got += d.Message
				}
			}
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestTotal checks the limit for the total size of the files of a tree.
func TestTotal(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("# 8 bytes"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(Options{})
	l.bytes = 15
	if _, err := l.Load(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "more than 15 bytes together") {
		t.Error(err)
	}
}

// TestNames checks the limit for the number of names in a tree, which includes names of other files.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1.md", "a/.2", "b/3.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(Options{})
	for most, refused := range map[int]bool{4: true, 5: false} {
		l.names = most
		_, err := l.Load(t.Context(), dir)
		if refused != (err != nil && strings.Contains(err.Error(), "/b: the source tree has more than 4 files and folders")) {
			t.Errorf("%d: %v", most, err)
		}
	}
}

// TestManyErrors checks that, for a file with very many errors, Load lists syntax.MaxFindings of them, always
// the same, and sets Partial.
func TestManyErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 240,000 faults")
	}
	const n = syntax.MaxFindings + 2_000
	repeat := func(line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	const cluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster`
	bad := &discoveryv3.DiscoveryResponse{}
	for range n {
		bad.Resources = append(bad.Resources, &anypb.Any{TypeUrl: "x/unknown"})
	}
	binary, err := proto.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list.json":      "[{}" + strings.Repeat(",{}", n) + "]",
		"fields.json":    `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"` + repeat(func(i int) string { return fmt.Sprintf(`, "x%d": 1`, i) }) + "}",
		"elements.json":  `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a", "transport_socket_matches": [1` + strings.Repeat(",1", n) + "]}",
		"entries.json":   `{"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a", "metadata": {"filter_metadata": {"a": 1` + repeat(func(i int) string { return fmt.Sprintf(`, "x%d": 1`, i) }) + "}}}]}",
		"documents.yaml": strings.Repeat("---\nx: 1\n", n),
		"list.yaml":      "resources:\n" + strings.Repeat("- {}\n", n),
		"keys.yaml":      cluster + "\n" + strings.Repeat("name: a\n", n),
		"fields.txtpb":   "# proto-message: envoy.config.cluster.v3.Cluster\n" + strings.Repeat("x: 1\n", n),
		"list.pb":        string(binary),
		"files.yaml": "\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\nname: r\nvirtual_hosts:\n- name: v\n  domains: [\"*\"]\n  routes:\n" +
			strings.Repeat("  - {match: {prefix: /}, direct_response: {status: 200, body: {filename: missing}}}\n", n),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var first diag.List
			for range 2 {
				result, err := New(Options{}).Load(t.Context(), dir)
				if err != nil {
					t.Fatal(err)
				}
				last := result.Diagnostics[0] // it is about the file, without a line
				list := result.Diagnostics[1:]
				if !result.Partial || len(list) != syntax.MaxFindings || last.Code != diag.TooMany.Name || last.Severity != diag.Error || last.Message != "too many errors in this file: only 10000 are listed" {
					t.Fatalf("%d findings, partial: %v, %v", len(list), result.Partial, last)
				}
				if first == nil {
					first = list
				}
				if !reflect.DeepEqual(list, first) {
					t.Fatal("another run lists other findings")
				}
			}
		})
	}
}

// TestManyBadFiles checks the limit for the errors of all files of a tree.
func TestManyBadFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.json", i)), []byte("[{},{}]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(Options{})
	l.findings = 20
	result, err := l.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Diagnostics; !result.Partial || len(got) != 21 || got[0].String() != dir+": error: too many errors in the source tree: only 20 are listed [too-many-findings]" || got[20].File != filepath.Join(dir, "09.json") {
		t.Errorf("%d findings, partial: %v: %v", len(got), result.Partial, got)
	}
}

// TestManyWarnings checks that a file with too many warnings keeps its resources.
func TestManyWarnings(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 10,000 resources")
	}
	const n = syntax.MaxFindings + 1
	dir := t.TempDir()
	text := "resources:\n" + strings.Repeat("- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  ttl: 1s\n  resource: {'@type': type.googleapis.com/envoy.service.runtime.v3.Runtime, name: a}\n", n)
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := New(Options{}).Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Diagnostics; result.Partial || len(result.Resources()) != n || got.HasErrors() || len(got) != syntax.MaxFindings+1 || got[0].Code != diag.TooMany.Name {
		t.Errorf("%d resources, partial: %v, %d findings, %v", len(result.Resources()), result.Partial, len(got), got[0])
	}
}

// TestInlinedTotal checks that an inlined file counts for the total size as often as resources name it, even if
// Load does not read it again.
func TestInlinedTotal(t *testing.T) {
	dir := t.TempDir()
	text := "resources:\n" + strings.Repeat("- {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: a, generic_secret: {secret: {filename: data}}}\n", 3)
	for name, text := range map[string]string{"a.yaml": text, "data": strings.Repeat("x", 1000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(len(text)) + 3*1000
	l := New(Options{})
	for _, tt := range []struct {
		most    int64
		refused bool
	}{{size, false}, {size, false}, {size - 1, true}, {size - 2001, true}, {size, false}} {
		l.bytes = tt.most
		if _, err := l.Load(t.Context(), dir); tt.refused != (err != nil && strings.Contains(err.Error(), "bytes together")) {
			t.Errorf("%d of %d: %v", tt.most, size, err)
		}
	}
}

// TestResources checks the limit for the number of resources of a tree.
func TestResources(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		text := strings.Repeat("---\n'@type': type.googleapis.com/envoy.service.runtime.v3.Runtime\nname: a\n", 2)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(Options{})
	for most, refused := range map[int64]bool{3: true, 4: false} {
		l.held = most
		for range 2 {
			if _, err := l.Load(t.Context(), dir); refused != (err != nil && strings.Contains(err.Error(), "more than 3 resources")) {
				t.Errorf("%d: %v", most, err)
			}
		}
	}
}
