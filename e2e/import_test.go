package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
)

// The tests here import the /config_dump or the bootstrap of an Envoy, start another Envoy from the result, and
// compare both Envoys.

// TestImportExamples imports the Envoys of the examples.
func TestImportExamples(t *testing.T) {
	envoytest.Binary(t)
	for name, tree := range map[string]string{"quickstart": ".", "kubernetes": "config", "multi": ".", "ads": "config", "legacy": "config"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExample(t, name, 8081, 8082, 8083, 10000, 10001, 10080)
			imports(t, started(t, e.dir, filepath.Join(e.dir, tree)))
		})
	}
	t.Run("static-import", func(t *testing.T) {
		t.Parallel()
		e := newExample(t, "static-import", 8081, 8082, 10080)
		imports(t, startBootstrap(t, e.dir, filepath.Join(e.dir, "envoy.yaml")))
	})
	t.Run("legacy as it is", func(t *testing.T) {
		t.Parallel()
		e := newExample(t, "legacy", 8081, 8082, 8083, 10000)
		imports(t, startBootstrap(t, e.dir, filepath.Join(e.dir, "envoy.yaml")))
	})
}

// TestImportCases imports an Envoy with the resources of all cases of package agreement that Envoy accepts: once
// with path subscriptions, and once with static resources, by the dump and by the bootstrap file.
func TestImportCases(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	dir := t.TempDir()
	ca := certs.NewAuthority(t)
	cert, key := ca.Sign(1, "rsa.example.com")
	for name, text := range map[string][]byte{"ca.pem": ca.PEM(), "rsa.pem": cert, "rsa.key": key} {
		envoytest.Publish(t, filepath.Join(dir, "certs", name), string(text))
	}
	all := readCases(t, dir)
	publish := func(name, list string, resources []any) {
		t.Helper()
		envoytest.Publish(t, filepath.Join(dir, name), marshal(t, map[string]any{list: resources}))
	}
	publish("cds.json", "resources", all["clusters"])
	publish("lds.json", "resources", all["listeners"])
	envoy := envoytest.Start(t, envoytest.Options{Dir: dir, Bootstrap: []byte(marshal(t, map[string]any{
		"admin": anyAdmin, "node": map[string]any{"id": "all", "cluster": "cases"},
		"dynamic_resources": map[string]any{"cds_config": fileSource(dir, "cds.json"), "lds_config": fileSource(dir, "lds.json")},
	}))})
	dump := envoy.Admin(t, "/config_dump?include_eds")
	envoy.Stop(t)
	if n := len(resourcesOf(t, dump)); n < 600 {
		t.Errorf("Envoy has %d resources of the cases", n)
	}
	dump, config := importable(t, dump, dir)
	sameAfter(t, dir, dump, config)

	path := filepath.Join(dir, "envoy.json")
	envoytest.Publish(t, path, staticBootstrap(t, dump))
	envoy = startBootstrap(t, dir, path)
	dump, byDump, byFile := envoy.Admin(t, "/config_dump?include_eds"), filepath.Join(dir, "by-dump"), filepath.Join(dir, "by-file")
	must(t, "import", "--root", dir, "http://"+envoy.AdminAddress(t), byDump)
	must(t, "import", "--root", dir, path, byFile)
	envoy.Stop(t)
	sameAfter(t, dir, dump, byDump)
	sameAfter(t, dir, dump, byFile)
}

// staticBootstrap returns a bootstrap with the clusters and listeners in a dump.
func staticBootstrap(t *testing.T, dump string) string {
	t.Helper()
	var all struct {
		Configs []struct {
			Bootstrap map[string]any
			Static    []struct{ Cluster map[string]any } `json:"static_clusters"`
			Active    []struct{ Cluster map[string]any } `json:"dynamic_active_clusters"`
			Warming   []struct{ Cluster map[string]any } `json:"dynamic_warming_clusters"`
			Listeners []struct {
				Active  struct{ Listener map[string]any } `json:"active_state"`
				Warming struct{ Listener map[string]any } `json:"warming_state"`
			} `json:"dynamic_listeners"`
		}
	}
	if err := json.Unmarshal([]byte(dump), &all); err != nil {
		t.Fatal(err)
	}
	var clusters, listeners []map[string]any
	for _, section := range all.Configs {
		for _, c := range slices.Concat(section.Static, section.Active, section.Warming) {
			clusters = append(clusters, c.Cluster)
		}
		for _, l := range section.Listeners {
			if l.Active.Listener != nil {
				listeners = append(listeners, l.Active.Listener)
			} else if l.Warming.Listener != nil {
				listeners = append(listeners, l.Warming.Listener)
			}
		}
	}
	for _, r := range slices.Concat(clusters, listeners) {
		delete(r, "@type")
	}
	return marshal(t, map[string]any{
		"admin": anyAdmin, "node": map[string]any{"id": "all", "cluster": "cases"},
		"static_resources": map[string]any{"clusters": clusters, "listeners": listeners},
	})
}

// TestImportEnds: SIGTERM ends the wait for an Envoy that does not answer, and import writes no file.
func TestImportEnds(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	around := t.TempDir()
	p := start(t, binary, "import", server.URL, filepath.Join(around, "edge"))
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nobody has asked")
	}
	p.Signal(t, syscall.SIGTERM)
	if exit := p.Wait(t); exit != 3 || !strings.Contains(p.Log(), "nothing is written") {
		t.Errorf("exit status %d: %s", exit, p.Log())
	}
	if entries, err := os.ReadDir(around); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestImportRemoteEnds: SIGTERM ends the wait for a control plane that does not answer, and import writes no file.
func TestImportRemoteEnds(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "xds.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	around := t.TempDir()
	p := start(t, binary, "import", "--node-id", "edge-1", "xds+unix:"+socket, filepath.Join(around, "edge"))
	asks, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { asks.Close() })
	p.Signal(t, syscall.SIGTERM)
	if exit := p.Wait(t); exit != 3 || !strings.Contains(p.Log(), "nothing is written") {
		t.Errorf("exit status %d: %s", exit, p.Log())
	}
	if entries, err := os.ReadDir(around); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// importable imports a dump without the cases that can't be imported: cases with secrets, and cases that xdspub
// refuses and Envoy accepts. It returns the rest of the dump, and the directory of the import.
func importable(t *testing.T, dump, dir string) (left, config string) {
	t.Helper()
	file := filepath.Join(dir, "dump.json")
	envoytest.Publish(t, file, dump)
	config = filepath.Join(dir, "edge")
	_, stderr, exit := xdspub(t, "import", "--root", dir, "--max-findings", "1000", file, config)
	if _, err := os.Stat(config); exit != 1 || err == nil {
		t.Fatalf("a dump with secrets: exit status %d, %v\n%s", exit, err, stderr)
	}
	hidden := casesIn(stderr, `error: Envoy shows no secrets, and \w+ "(c\d+)\.`)
	dump = withoutCases(t, dump, hidden)
	envoytest.Publish(t, file, dump)
	must(t, "import", "--root", dir, file, config)
	stdout, _, _ := xdspub(t, "validate", "--bootstrap", filepath.Join(config, "bootstrap.json"), filepath.Join(config, "config"))
	refused := casesIn(stdout, `(?m)^\S+/(c\d+)\.[^/]*:[0-9:]+: error: `)
	if len(hidden) == 0 || len(hidden) > 20 || len(refused) == 0 || len(refused) > 20 {
		t.Errorf("%d cases have secrets, %d are refused", len(hidden), len(refused))
	}
	if err := os.RemoveAll(config); err != nil {
		t.Fatal(err)
	}
	dump = withoutCases(t, dump, refused)
	envoytest.Publish(t, file, dump)
	must(t, "import", "--root", dir, file, config)
	return dump, config
}

// casesIn returns the ids of cases that a pattern matches in a text.
func casesIn(text, pattern string) map[string]bool {
	ids := make(map[string]bool)
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		ids[m[1]] = true
	}
	return ids
}

// withoutCases returns a dump without the resources of some cases.
func withoutCases(t *testing.T, dump string, ids map[string]bool) string {
	t.Helper()
	var all struct {
		Configs []map[string]any `json:"configs"`
	}
	if err := json.Unmarshal([]byte(dump), &all); err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`"(c\d+)\.`)
	for _, section := range all.Configs {
		for list, entries := range section {
			entries, ok := entries.([]any)
			if !ok {
				continue
			}
			section[list] = slices.DeleteFunc(entries, func(e any) bool {
				m := of.FindStringSubmatch(marshal(t, e))
				return m != nil && ids[m[1]]
			})
		}
	}
	return marshal(t, all)
}

var anyAdmin = map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}}

func fileSource(dir, name string) any {
	return map[string]any{"resource_api_version": "V3", "path_config_source": map[string]any{"path": filepath.Join(dir, name)}}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readCases returns the clusters and listeners of all sides of cases that Envoy accepted, with unique names and
// addresses. It writes their other files below dir.
func readCases(t *testing.T, dir string) map[string][]any {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "tools/agreement/testdata/cases/*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	all, seen := make(map[string][]any), make(map[string]bool)
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []string{"good", "bad"} {
			if side == "bad" && !strings.Contains(string(archive.Comment), "outcome: accepted") {
				continue
			}
			c := &importCase{t: t, id: fmt.Sprint("c", len(seen)), dir: dir, files: make(map[string][]any)}
			whole := ""
			for _, f := range archive.Files {
				if base, ok := strings.CutPrefix(f.Name, side+"/"); ok && c.read(base, f.Data) {
					whole += f.Name + string(f.Data)
				}
			}
			if whole = strings.ReplaceAll(whole, side+"/", ""); seen[whole] {
				continue
			}
			seen[whole] = true
			all["clusters"] = append(all["clusters"], c.own("cds.yaml")...)
			all["listeners"] = append(all["listeners"], c.own("lds.yaml")...)
			for base := range c.files {
				envoytest.Publish(t, filepath.Join(dir, c.id, strings.TrimSuffix(base, ".yaml")+".json"), marshal(t, map[string]any{"resources": c.own(base)}))
			}
		}
	}
	return all
}

// importCase is one side of a case.
type importCase struct {
	t     *testing.T
	id    string
	dir   string
	files map[string][]any // resources
	names map[string]bool  // of resources
}

// read reads a file. It returns false if only Envoy can read the file, or if its YAML does not mean the same as
// JSON, such as a name that is written as a number.
func (c *importCase) read(base string, text []byte) bool {
	var response struct{ Resources []any }
	found := load.AsWritten(load.Input{Name: base, Format: "yaml", Data: text}).Diagnostics
	lenient := slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == "invalid-value" })
	if found.HasErrors() || lenient || yaml.Unmarshal(text, &response) != nil {
		return false
	}
	c.files[base] = response.Resources
	if c.names == nil {
		c.names = make(map[string]bool)
	}
	for _, r := range response.Resources {
		r, _ := r.(map[string]any)
		for _, field := range []string{"name", "cluster_name"} {
			if name, ok := r[field].(string); ok && name != "" {
				c.names[name] = true
			}
		}
	}
	return true
}

// own returns the resources of a file, with unique names, addresses and files.
func (c *importCase) own(base string) (list []any) {
	for _, r := range c.files[base] {
		r := c.rename(r).(map[string]any)
		if at, ok := r["address"].(map[string]any); ok && at["socket_address"] != nil {
			r["address"] = map[string]any{"pipe": map[string]any{"path": fmt.Sprintf("@%d-%s-%v", os.Getpid(), c.id, r["name"])}}
		}
		list = append(list, r)
	}
	return list
}

func (c *importCase) rename(v any) any {
	switch v := v.(type) {
	case string:
		if file, ok := strings.CutPrefix(v, "xds/"); ok && strings.HasSuffix(v, ".yaml") {
			return filepath.Join(c.dir, c.id, strings.TrimSuffix(file, ".yaml")+".json")
		}
		if c.names[v] {
			return c.id + "." + v
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = c.rename(v[i])
		}
		return list
	case map[string]any:
		all := make(map[string]any)
		for key, value := range v {
			all[key] = c.rename(value)
		}
		return all
	}
	return v
}

// started renders a source tree, and starts an Envoy in a directory that reads the output. base is empty, or
// --bootstrap and the path of a bootstrap, which the Envoy starts from, too.
func started(t *testing.T, dir, tree string, base ...string) *envoytest.Envoy {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	must(t, append(append([]string{"render", "--quiet", "--out", out}, base...), tree)...)
	if len(base) > 0 {
		base = []string{"--from", base[1]}
	} else {
		base = []string{"--admin", "127.0.0.1:0", "--node-id", "a", "--node-cluster", "b"}
	}
	return envoytest.Start(t, envoytest.Options{Dir: dir, Bootstrap: []byte(must(t, append([]string{"bootstrap", "envoy", "--out", out}, base...)...))})
}

// startBootstrap starts an Envoy in a directory from a bootstrap, with another address of the admin interface.
func startBootstrap(t *testing.T, dir, path string) *envoytest.Envoy {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return envoytest.Start(t, envoytest.Options{Dir: dir, Bootstrap: []byte(strings.ReplaceAll(string(text), "port_value: 9901", "port_value: 0"))})
}

// must runs xdspub, which has to succeed.
func must(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, exit := xdspub(t, args...)
	if exit != 0 {
		t.Fatalf("%q: exit status %d\n%s%s", args, exit, stdout, stderr)
	}
	return stdout
}

// imports imports a running Envoy, stops it, starts another Envoy from the import, and compares both.
func imports(t *testing.T, envoy *envoytest.Envoy) {
	t.Helper()
	before := envoy.Admin(t, "/config_dump?include_eds")
	dir := filepath.Join(t.TempDir(), "edge")
	must(t, "import", "http://"+envoy.AdminAddress(t), dir)
	envoy.Stop(t)
	sameAfter(t, t.TempDir(), before, dir)
}

// sameAfter starts an Envoy in a directory from an import, and compares its dump with the dump before.
func sameAfter(t *testing.T, dir, before, config string) {
	t.Helper()
	rest := filepath.Join(config, "bootstrap.json")
	if _, err := os.Stat(rest); err != nil {
		rest = filepath.Join(config, "bootstrap.yaml")
	}
	envoy := started(t, dir, filepath.Join(config, "config"), "--bootstrap", rest)
	absolute := strings.NewReplacer(dir+"/certs/", "certs/")
	want := resourcesOf(t, absolute.Replace(before))
	envoytest.Eventually(t, patience, "Envoy has what the other one has", func() (bool, string) {
		diff := cmp.Diff(want, resourcesOf(t, absolute.Replace(envoy.Admin(t, "/config_dump?include_eds"))))
		return diff == "", diff
	})
	envoy.Stop(t)
}

// resourcesOf returns the bootstrap and the resources in a dump, without config sources, versions and times.
func resourcesOf(t *testing.T, dump string) map[string]any {
	t.Helper()
	var all struct{ Configs []map[string]any }
	if err := json.Unmarshal([]byte(dump), &all); err != nil {
		t.Fatalf("%v in %.300s", err, dump)
	}
	found := make(map[string]any)
	for _, section := range all.Configs {
		for list, entries := range section {
			entries, _ := entries.([]any)
			for _, entry := range entries {
				collect(found, list, entry.(map[string]any))
			}
		}
		if b, ok := section["bootstrap"].(map[string]any); ok {
			delete(b, "static_resources")
			delete(b, "dynamic_resources")
			found["bootstrap"] = b
		}
	}
	return found
}

// collect adds the resources in an entry of a list of a dump to found.
func collect(found map[string]any, list string, entry map[string]any) {
	if list == "static_route_configs" { // the listeners have these routes, too
		return
	}
	if state, ok := entry["active_state"].(map[string]any); ok {
		entry = state
	} else if state, ok := entry["warming_state"].(map[string]any); ok {
		entry = state
	}
	resources, _ := entry["scoped_route_configs"].([]any)
	for _, field := range []string{"cluster", "listener", "route_config", "secret", "ecds_filter", "endpoint_config"} {
		if r := entry[field]; r != nil {
			resources = append(resources, r)
		}
	}
	for _, r := range resources {
		r := withoutSources(r).(map[string]any)
		key := fmt.Sprint(r["@type"], " ", r["name"], r["cluster_name"])
		for found[key] != nil {
			key += "'"
		}
		found[key] = r
	}
}

// withoutSources returns a value without the config sources in it.
func withoutSources(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutSources(v[i])
		}
	case map[string]any:
		for _, kind := range []string{"ads", "self", "path", "path_config_source", "api_config_source"} {
			if _, is := v[kind].(map[string]any); is {
				return "a config source"
			}
		}
		for key, value := range v {
			if v[key] = withoutSources(value); key == "config_source" {
				v[key] = "a config source"
			}
		}
	}
	return v
}
