package load_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/xds"
)

const aCluster = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s}` + "\n"

// cluster returns a YAML document with one cluster.
func cluster(name string) string { return fmt.Sprintf(aCluster, name) }

// write writes files below dir. files has a name and a content for each file.
func write(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func mustLoad(t testing.TB, l *load.Loader, root string) *load.Result {
	t.Helper()
	result, err := l.Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	inside(t, result)
	return result
}

func names(resources []*xds.Resource) []string {
	var names []string
	for _, r := range resources {
		names = append(names, r.Name)
	}
	return names
}

func TestCodes(t *testing.T) {
	if !slices.IsSortedFunc(decode.Codes, func(a, b diag.Code) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the codes are not sorted by name")
	}
	for _, c := range decode.Codes {
		summary, reason, _ := strings.Cut(c.Doc, "\n\n")
		if c.Name == "" || !strings.HasSuffix(summary, ".") || reason == "" {
			t.Errorf("%s: a code has a name, a summary that is a sentence, and a reason: %q", c.Name, c.Doc)
		}
	}
}

// TestIncremental checks that a Loader returns the same *xds.Resource for an unchanged resource.
func TestIncremental(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", cluster("a"), "b.yaml", cluster("b"), "c.yaml", cluster("c"), "bad.yaml", "name: x\n")
	l := load.New(load.Options{})
	first := mustLoad(t, l, dir)
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(first.Resources())); diff != "" {
		t.Fatal(diff)
	}

	again := mustLoad(t, l, dir)
	if !slices.Equal(first.Resources(), again.Resources()) {
		t.Error("nothing changed, but resources are new")
	}
	if diff := cmp.Diff(first.Diagnostics, again.Diagnostics); diff != "" {
		t.Errorf("findings of unchanged files (-first +again):\n%s", diff)
	}
	if text(t, first) != text(t, again) {
		t.Error("findings of unchanged files are printed otherwise")
	}

	write(t, dir, "b.yaml", cluster("b2"), "d.yaml", cluster("d"))
	if err := os.Remove(filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	changed := mustLoad(t, l, dir)
	if diff := cmp.Diff([]string{"a", "b2", "d"}, names(changed.Resources())); diff != "" {
		t.Fatal(diff)
	}
	if changed.Resources()[0] != first.Resources()[0] {
		t.Error("a.yaml did not change, but its resource is new")
	}
	if changed.Resources()[1] == first.Resources()[1] {
		t.Error("b.yaml changed, but its resource is the old one")
	}

	// A failed Load keeps the resources of the Load before.
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(t.Context(), dir); err == nil {
		t.Fatal("a dangling link was loaded")
	}
	if err := os.Remove(filepath.Join(dir, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(changed.Resources(), mustLoad(t, l, dir).Resources()) {
		t.Error("after a failed Load resources are new")
	}
}

func TestOneFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", cluster("a"), "b.yaml", cluster("b"))
	result := mustLoad(t, load.New(load.Options{}), filepath.Join(dir, "b.yaml"))
	if diff := cmp.Diff([]string{"b"}, names(result.Resources())); diff != "" {
		t.Error(diff)
	}
	if _, err := load.New(load.Options{}).Load(t.Context(), filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a missing root: %v", err)
	}
}

func TestLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, dir, "a.yaml", "\ufeff# größe\r\n"+strings.TrimSuffix(cluster("a"), "\n"))
	result := mustLoad(t, load.New(load.Options{}), dir)
	for line, want := range map[int]string{1: "# größe", 2: strings.TrimSuffix(cluster("a"), "\n")} {
		if got, ok := result.Line(diag.Position{File: path, Line: line}); !ok || got != want {
			t.Errorf("line %d: %q, %v; want %q", line, got, ok, want)
		}
	}
	for _, p := range []diag.Position{{File: path}, {File: path, Line: -1}, {File: path, Line: 3}, {File: "other", Line: 1}} {
		if got, ok := result.Line(p); ok {
			t.Errorf("%v: %q", p, got)
		}
	}
}

// TestLinks checks that Load follows links inside a tree, such as those of a mounted ConfigMap. Load follows a
// link out of the tree only into allowed folders; any other such link is a finding.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		"elsewhere/a.yaml", cluster("a"),
		"elsewhere/folder/b.yaml", cluster("b"),
		"tree/..2026_01/cds.yaml", cluster("configmap"))
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, "tree", name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../elsewhere/a.yaml", "file.yaml")
	link("../elsewhere/folder", "folder")
	link("..2026_01", "..data")
	link("..data/cds.yaml", "cds.yaml")
	link("nowhere", ".#lock.yaml") // Emacs
	l := load.New(load.Options{})
	result := mustLoad(t, l, filepath.Join(dir, "tree"))
	want := "tree/cds.yaml:1:1: cluster \"configmap\"\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(describe(result), dir+"/", "")); diff != "" {
		t.Error(diff)
	}
	var outside []string
	for _, d := range result.Diagnostics {
		outside = append(outside, strings.ReplaceAll(fmt.Sprintf("%s: %s [%s]", d.Position, d.Message, d.Code), dir+"/", ""))
	}
	if diff := cmp.Diff([]string{
		"tree/file.yaml: it leads out of the source tree, to elsewhere/a.yaml [outside-tree]",
		"tree/folder: it leads out of the source tree, to elsewhere/folder [outside-tree]",
	}, outside); diff != "" {
		t.Error(diff)
	}

	l = load.New(load.Options{Allow: []string{filepath.Join(dir, "elsewhere")}})
	result = mustLoad(t, l, filepath.Join(dir, "tree"))
	want = "tree/cds.yaml:1:1: cluster \"configmap\"\ntree/file.yaml:1:1: cluster \"a\"\ntree/folder/b.yaml:1:1: cluster \"b\"\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(describe(result), dir+"/", "")); diff != "" {
		t.Error(diff)
	}

	// The root may be a link.
	if err := os.Symlink("tree", filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	if n := len(mustLoad(t, l, filepath.Join(dir, "root")).Resources()); n != 3 {
		t.Errorf("through a link to the root: %d resources", n)
	}

	for target, want := range map[string]string{
		".":      "the link leads back to",
		"..":     "the link leads back to",
		"gone":   "no such file",
		"folder": "",
	} {
		loop := filepath.Join(dir, "elsewhere", "folder", "loop")
		if err := os.Symlink(target, loop); err != nil {
			t.Fatal(err)
		}
		_, err := l.Load(t.Context(), filepath.Join(dir, "elsewhere"))
		if target == "folder" { // relative to the link, so the target does not exist
			want = "no such file"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("link to %s: %v, want %q", target, err, want)
		}
		if err := os.Remove(loop); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTooLarge checks that Load does not read a file above the limit, and reads it when it has shrunk.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, dir, "a.yaml", cluster("a"))
	resize := func(size int64) {
		t.Helper()
		if err := os.Truncate(path, size); err != nil { // sparse
			t.Fatal(err)
		}
	}
	codes := func(r *load.Result) []string {
		var codes []string
		for _, d := range r.Diagnostics {
			codes = append(codes, d.Code)
		}
		return codes
	}
	l := load.New(load.Options{})
	resize(128<<20 + 1)
	if diff := cmp.Diff([]string{"too-large"}, codes(mustLoad(t, l, dir))); diff != "" {
		t.Error(diff)
	}
	resize(0)
	if diff := cmp.Diff([]string{"empty-file"}, codes(mustLoad(t, l, dir))); diff != "" {
		t.Error(diff)
	}
}

// TestDeepNesting checks that very deeply nested text is an error and does not exhaust the stack.
func TestDeepNesting(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes of brackets")
	}
	const typed = `{"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "n", "typed_config": `
	deep := func(n int) map[string]string {
		return map[string]string{
			"open.json":      strings.Repeat("[", n),
			"closed.json":    strings.Repeat("[", n) + strings.Repeat("]", n),
			"objects.json":   strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n),
			"resources.json": `{"resources": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}",
			"open.yaml":      strings.Repeat("[", n),
			"closed.yaml":    strings.Repeat("[", n) + strings.Repeat("]", n),
			"maps.yaml":      strings.Repeat("{a: ", n) + "1" + strings.Repeat("}", n),
			"block.yaml":     strings.Repeat("- ", n) + "a",
			"any.json":       strings.Repeat(typed, n) + "{}" + strings.Repeat("}", n),
			"any.yaml":       strings.Repeat(typed, n) + "{}" + strings.Repeat("}", n),
		}
	}
	for _, n := range []int{150, 4900, 100_000} {
		for name, content := range deep(n) {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				dir := t.TempDir()
				write(t, dir, name, content)
				result := mustLoad(t, load.New(load.Options{}), dir)
				if !result.Diagnostics.HasErrors() {
					t.Error("nothing was found wrong")
				}
				if s := text(t, result); len(s) > 4000 {
					t.Errorf("%d bytes are printed", len(s))
				}
			})
		}
	}
}

// TestAliasMemory checks the limits for expanded YAML aliases, in bytes and in nodes.
func TestAliasMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("has hundreds of megabytes allocated")
	}
	nested := func(leaf string, width, depth int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "l0: &l0 %s\n", leaf)
		for i := range depth {
			fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i), width), ","))
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		content string
		limit   uint64 // MiB
	}{
		"billion laughs": {nested("lol", 10, 9), 16},
		"many maps":      {nested("{a: {b: {}}}", 30, 3), 96},
		"wide":           {nested("x", 1000, 2), 96},
		"long text":      {nested(strings.Repeat("x", 1<<20), 100, 2), 96},
		"just below":     {nested(strings.Repeat("x", 1<<20), 60, 1), 640},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "a.yaml", c.content)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			result := mustLoad(t, load.New(load.Options{}), dir)
			runtime.ReadMemStats(&after)
			used := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d bytes of text, %d MiB allocated, %v", len(c.content), used, time.Since(start))
			if used > c.limit {
				t.Errorf("%d MiB were allocated, the limit is %d", used, c.limit)
			}
			if !result.Diagnostics.HasErrors() {
				t.Error("nothing was found wrong")
			}
		})
	}
}

// TestInlined checks that a resource has the content of the files that it names, and that a changed file
// changes only the resources that inline it.
func TestInlined(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "server.yaml", `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: server
tls_certificate:
  certificate_chain: {filename: certs/server.pem}
  private_key: {filename: certs/server.key}
  watched_directory: {path: certs}
`, "certs/server.pem", "chain", "certs/server.key", "\xff", "a.yaml", cluster("a"))
	l := load.New(load.Options{})
	first := mustLoad(t, l, dir)
	want := &tlsv3.Secret{Name: "server", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "chain"}},
		PrivateKey:       &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("\xff")}},
	}}}
	if diff := cmp.Diff(want, first.Resources()[1].Message(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "certs/server.key"), filepath.Join(dir, "certs/server.pem")}, first.Inlined); diff != "" {
		t.Error(diff)
	}
	if again := mustLoad(t, l, dir); !slices.Equal(first.Resources(), again.Resources()) {
		t.Error("nothing changed, but resources are new")
	}
	write(t, dir, "certs/server.pem", "next")
	next := mustLoad(t, l, dir)
	if next.Resources()[0] != first.Resources()[0] || next.Resources()[1] == first.Resources()[1] {
		t.Error("not just the resource of the changed file is new")
	}
	if err := os.Remove(filepath.Join(dir, "certs/server.pem")); err != nil {
		t.Fatal(err)
	}
	if missing := mustLoad(t, l, dir); !missing.Diagnostics.HasErrors() {
		t.Error("a missing file is no finding")
	}
	write(t, dir, "certs/server.pem", "back")
	if back := mustLoad(t, l, dir); len(back.Diagnostics) > 0 {
		t.Error(back.Diagnostics)
	}
}

// TestPacked checks that equal resources have the same canonical form, however a file packs their Anys.
func TestPacked(t *testing.T) {
	const around = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	const inside = "type.googleapis.com/envoy.config.core.v3.Address"
	// The fields of a socket address, in both orders.
	address, port := "\x12\x09127.0.0.1", "\x18\x50"
	pack := func(value string) []byte {
		a, err := proto.Marshal(&corev3.TypedExtensionConfig{Name: "x", TypedConfig: &anypb.Any{TypeUrl: inside, Value: []byte("\x0a\x0d" + value)}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := proto.Marshal(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{{TypeUrl: around, Value: a}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const json = `{"@type": "` + around + `", "name": "x", "typed_config": {"@type": "`
	const value = `", "socket_address": {"address": "127.0.0.1", "port_value": 80}}}`
	var first []byte
	for _, in := range []load.Input{
		{Format: "json", Data: []byte(json + inside + value)},
		{Format: "json", Data: []byte(json + strings.Replace(inside, "type.googleapis.com", "example.com", 1) + value)},
		{Format: "yaml", Data: []byte(json + inside + value)},
		{Format: "pb", Data: pack(address + port)},
		{Format: "pb", Data: pack(port + address)},
		{Format: "pb_text", Data: []byte(`resources { [` + around + `] { name: "x" typed_config { type_url: "` + inside + `" value: "\n\r\030\120\022\t127.0.0.1" } } }`)},
	} {
		in.Name = "file." + in.Format
		result := load.AsWritten(in)
		if len(result.Diagnostics) > 0 || len(result.Resources()) != 1 {
			t.Fatal(in.Format, result.Diagnostics)
		}
		r := result.Resources()[0]
		packed(t, r)
		canonical, _ := r.Canonical()
		if first == nil {
			first = canonical
		}
		if !bytes.Equal(canonical, first) {
			t.Errorf("%s %q gives %q, want %q", in.Format, in.Data, canonical, first)
		}
	}
}

// TestMeta checks that a resource has the meta of its wrapper, in each format.
func TestMeta(t *testing.T) {
	want := &discoveryv3.Resource{Name: "a", Aliases: []string{"b"}, Version: "7", Ttl: durationpb.New(time.Minute)}
	m := &clusterv3.Cluster{Name: "a"}
	inner, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	whole := proto.CloneOf(want)
	whole.Resource = inner
	packed, err := anypb.New(whole)
	if err != nil {
		t.Fatal(err)
	}
	response := &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{packed}}
	for format, marshal := range map[string]func(proto.Message) ([]byte, error){"json": protojson.Marshal, "yaml": protojson.Marshal, "pb": proto.Marshal, "pb_text": prototext.Marshal} {
		data, err := marshal(response)
		if err != nil {
			t.Fatal(err)
		}
		r := load.AsWritten(load.Input{Name: "file", Format: format, Data: data}).Resources()[0]
		for _, r := range []*xds.Resource{r, r.With(proto.Clone(r.Message()))} {
			if diff := cmp.Diff(want, r.Meta, protocmp.Transform()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", format, diff)
			}
		}
	}
	if r := load.AsWritten(load.Input{Name: "file", Format: "yaml", Data: []byte(cluster("a"))}).Resources()[0]; r.Meta != nil {
		t.Errorf("without a wrapper there is Meta %v", r.Meta)
	}
}
