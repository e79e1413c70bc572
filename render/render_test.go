package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/source/load"
	"xdspub/xds"
)

var update = flag.Bool("update", false, "write the goldens again, and fail")

// bytesOnly compares files without the resources that went into them.
var bytesOnly = cmpopts.IgnoreFields(render.File{}, "Resources")

// TestGolden renders the source tree src/ of each testdata/*.txtar. out/ has the rendered files, watches the
// path subscriptions that they need, and findings the findings if there are errors. The comment of the archive
// may set options: "format F", "inline endpoints", "inline routes", "polled" and "empty layer L".
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			target := render.Target{EnvoyPath: "/xds", InlineEndpoints: strings.Contains(string(a.Comment), "inline endpoints"), InlineRoutes: strings.Contains(string(a.Comment), "inline routes")}
			if strings.Contains(string(a.Comment), "polled") {
				target.PollInterval = 2 * time.Second
			}
			if _, layer, ok := strings.Cut(string(a.Comment), "empty layer "); ok {
				target.EmptyLayers = []string{strings.Fields(layer)[0]}
			}
			if _, format, ok := strings.Cut(string(a.Comment), "format "); ok {
				target.Format = render.FormatNamed(strings.Trim(strings.Fields(format)[0], ".,:"))
			}
			want := &txtar.Archive{Comment: a.Comment}
			src := t.TempDir()
			for _, f := range a.Files {
				if below, ok := strings.CutPrefix(f.Name, "src/"); ok {
					want.Files = append(want.Files, f)
					write(t, filepath.Join(src, below), f.Data)
				}
			}
			var r render.Renderer
			out, list := r.Render(t.Context(), snapshot(t, src), target)
			if len(list) > 0 {
				var text bytes.Buffer
				if err := diag.WriteText(&text, list, diag.TextOptions{}); err != nil {
					t.Fatal(err)
				}
				want.Files = append(want.Files, txtar.File{Name: "findings", Data: bytes.ReplaceAll(text.Bytes(), []byte(src), []byte("src"))})
			}
			if out != nil {
				for _, f := range out.Files {
					want.Files = append(want.Files, txtar.File{Name: "out/" + f.Path, Data: f.Data})
				}
				want.Files = append(want.Files, txtar.File{Name: "watches", Data: []byte(strings.Join(out.Watches, "\n") + "\n")})
			}
			got, golden := string(txtar.Format(want)), string(txtar.Format(a))
			if got == golden {
				return
			}
			if *update {
				write(t, name, []byte(got))
			}
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(golden, got))
		})
	}
}

// TestSecret checks which files only Envoy's group may read.
func TestSecret(t *testing.T) {
	src := t.TempDir()
	write(t, filepath.Join(src, "a.yaml"), []byte(`
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: key
  tls_certificate: {certificate_chain: {inline_string: c}, private_key: {inline_string: k}}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: files
  tls_certificate: {certificate_chain: {filename: /c.pem}, private_key: {filename: /k.pem}}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: ca
  validation_context: {trusted_ca: {inline_string: c}}
`))
	var r render.Renderer
	out, list := r.Render(t.Context(), snapshot(t, src), render.Target{EnvoyPath: "/xds"})
	if list.HasErrors() {
		t.Fatal(list)
	}
	secret := map[string]bool{}
	for _, f := range out.Files {
		if f.Secret {
			secret[f.Path] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"sds/key/sds.json": true}, secret); diff != "" {
		t.Errorf("secret files (-want +got):\n%s", diff)
	}
}

// TestAgain renders again after each kind of change that can affect another resource, and compares with a new
// Renderer.
func TestAgain(t *testing.T) {
	const (
		eds     = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: EDS}`
		web     = `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: web}`
		secret  = `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: ca, validation_context: {}}`
		tls     = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: tls, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: ca}}}}}`
		routes  = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, vhds: {config_source: {ads: {}}}}`
		host    = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: r/h, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [h]}}`
		scope   = `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: r, key: {fragments: [{string_key: k}]}}`
		listens = `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, rds: {route_config_name: r, config_source: {ads: {}}}}}]}]}`
		scoped  = `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, scoped_routes: {name: s, scope_key_builder: {fragments: [{}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}}}]}]}`
	)
	own := strings.Replace(strings.Replace(scoped, "rds_config_source: {ads: {}}", "rds_config_source: {path: /r.json}", 1), "name: l,", "name: own,", 1)
	src := t.TempDir()
	loader := load.New(load.Options{})
	for _, target := range []render.Target{{}, {InlineEndpoints: true}, {InlineRoutes: true}, {Format: render.YAML}, {Format: render.Binary}, {Format: render.Text}} {
		target.EnvoyPath = "/xds"
		var warm render.Renderer
		for _, trees := range [][]string{
			{eds}, {eds, web}, {web}, {tls}, {tls, secret}, {tls, secret, eds, web}, {tls, eds},
			{routes}, {routes, host}, {host}, {routes, scope}, {routes, scope, scoped}, {routes, scope, own}, {routes, scope}, {routes, scope, own}, {routes, scope, own, scoped}, {routes, host, scope, scoped}, {scope, scoped}, {routes, scoped},
			{listens}, {listens, routes}, {listens, routes, host}, {listens, host},
		} {
			for i := range 8 {
				os.Remove(filepath.Join(src, string(rune('a'+i))+".yaml"))
			}
			for i, text := range trees {
				write(t, filepath.Join(src, string(rune('a'+i))+".yaml"), []byte(text))
			}
			loaded, err := loader.Load(t.Context(), src)
			if err != nil || loaded.Diagnostics.HasErrors() {
				t.Fatal(err, loaded.Diagnostics)
			}
			s := loaded.Snapshot()
			var cold render.Renderer
			want, _ := cold.Render(t.Context(), s, target)
			got, _ := warm.Render(t.Context(), s, target)
			if diff := cmp.Diff(want, got, bytesOnly); diff != "" {
				t.Fatalf("%v, %+v (-cold +warm):\n%s", trees, target, diff)
			}
		}
	}
}

// FuzzRoundTrip checks that rendered files are a source tree in each format, and render to themselves.
func FuzzRoundTrip(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasPrefix(file.Name, "src/") {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		src := t.TempDir()
		write(t, filepath.Join(src, "a.yaml"), source)
		loaded, err := load.New(load.Options{}).Load(t.Context(), src)
		if err != nil || loaded.Diagnostics.HasErrors() {
			return
		}
		s := loaded.Snapshot()
		if slices.ContainsFunc(s.All(), func(r *xds.Resource) bool { return r.Name == "" || s.Lookup(r.Type, r.Name) != r }) {
			return // validation finds errors in such trees
		}
		for _, format := range render.Formats {
			target := render.Target{EnvoyPath: "/xds", Format: format}
			first, list := (&render.Renderer{}).Render(t.Context(), s, target)
			if list.HasErrors() {
				continue
			}
			again := t.TempDir()
			for _, file := range first.Files {
				write(t, filepath.Join(again, file.Path), file.Data)
			}
			second, list := (&render.Renderer{}).Render(t.Context(), snapshot(t, again), target)
			if list.HasErrors() {
				t.Fatalf("rendered files don't render: %v", list)
			}
			if diff := cmp.Diff(first.Files, second.Files, bytesOnly); diff != "" {
				t.Errorf("render(load(render(x))) differs from render(x) (-first +second):\n%s", diff)
			}
		}
	})
}

func FuzzFolder(f *testing.F) {
	for _, s := range []string{"a", "A", ".a", "..", "a/b", "%41", "a b", "ü", strings.Repeat("x", 300), strings.Repeat("/", 80)} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		x, y := render.Folder(a), render.Folder(b)
		if (a == b) != (x == y) {
			t.Errorf("Folder(%q) = %q, Folder(%q) = %q", a, x, b, y)
		}
		if x == "" || x[0] == '.' || len(x) > 255 || strings.ContainsAny(x, "/\\\x00") {
			t.Errorf("Folder(%q) = %q is no safe folder name", a, x)
		}
	})
}

func snapshot(t testing.TB, dir string) *xds.Snapshot {
	t.Helper()
	result, err := load.New(load.Options{}).Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if result.Diagnostics.HasErrors() {
		t.Fatal(result.Diagnostics)
	}
	return result.Snapshot()
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
