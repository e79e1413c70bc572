package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"xdspub/render"
	"xdspub/tools/envoytest"
)

// soak is a fixture whose tree is edited at random, with the intended content of the tree. Each edit leaves a valid
// tree: it changes the users of a resource before it removes the resource.
type soak struct {
	*fixture
	t     *testing.T
	rand  *rand.Rand
	dir   string // for files outside of the tree
	steps int

	ports     map[string]int // of upstreams and listeners
	pairs     []pair
	files     map[string][]string // names of the resources in each file
	resources map[string]*thing
	away      bool   // the folder "guest" is not in the tree
	bad       string // the file that is invalid now; "" for none
	volumes   int    // versions of the mounted folder so far
}

// thing is a resource: its kind, the value that edits change, and the resources that it uses.
type thing struct {
	kind  string
	value int
	uses  []string
}

// orphan is a folder that Envoy does not read, because the scopes have its routes inlined.
const orphan = "rds/by-scope"

// visited are the folders that only the listener "visitor" reads.
var visited = []string{"rds/visited-routes", "sds/visited-secret", "ecds/visited-marker"}

// upstreams are the values that a resource can have as its upstream.
var upstreams = []string{"blue", "green", "red"}

const (
	statics = 22 // clusters c0, c1, … of which some are there
	dynamic = 6  // the same of e0, e1, … with endpoints
	edges   = 4  // the same of listeners l0, l1, … with routes
)

// folders of the tree. What lies in "mounted" is turned by a link, as Kubernetes
// does with a volume; "guest" comes and goes as a whole, and uses nothing else.
var folders = []string{"", "clusters", "edge/public", "team a", "team-b/x/y", "mounted"}

var suffixes = []string{".yaml", ".yml", ".json", ".pb", ".pb_text", ".txtpb", ".textproto"}

func newSoak(t *testing.T, random *rand.Rand) *soak {
	envoytest.Binary(t) // a test without Envoy ends here
	s := &soak{t: t, rand: random, dir: t.TempDir(), ports: map[string]int{}, files: map[string][]string{}, resources: map[string]*thing{}}
	args := []string{"--allow-removal", "--trim-delay", "5s", "--format", choose(s, render.Formats).Name, "--eds", choose(s, []string{"file", "inline"})}
	watching := choose(s, [][]string{
		{"--rescan", "1h"}, {"--rescan", "1h"}, // each event counts
		{"--rescan", "1s"},
		{"--rescan", "5s", "--poll", "100ms"},
	})
	t.Logf("flags: %v %v", args, watching)
	s.fixture = newFixture(t, nil, args...)
	for _, name := range upstreams {
		s.ports[name] = envoytest.NewUpstream(t, name).Port()
	}
	for i := range 3 {
		s.pairs = append(s.pairs, newPair(t, fmt.Sprint("pair", i)))
	}
	s.plant()
	s.startWatch(t, watching...)
	// Then what drains ends before what it uses is trimmed. A request may take a second, on a busy machine.
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--drain-time-s", "3", "--parent-shutdown-time-s", "4"}})
	s.took(t, orphan)
	return s
}

// unread returns the folders that nobody reads.
func (s *soak) unread() []string {
	if s.resources["visitor"] == nil {
		return append([]string{orphan}, visited...)
	}
	return []string{orphan}
}

// plant makes the tree of the beginning.
func (s *soak) plant() {
	for _, name := range []string{"edge", "scoped", "secure", "visitor", "guest", "l0", "l1", "l2", "l3"} {
		s.ports[name] = envoytest.FreePort(s.t)
	}
	for i := range statics - 4 {
		s.add(fmt.Sprint("c", i), &thing{kind: "static"})
	}
	for i := range dynamic - 2 {
		s.add(fmt.Sprint("e", i), &thing{kind: "eds"})
		s.add(fmt.Sprint("e", i, ".endpoints"), &thing{kind: "endpoints"})
	}
	s.add("main", &thing{kind: "main", uses: []string{"c0", "e0"}})
	s.add("edge", &thing{kind: "listener", uses: []string{"main", "marker"}})
	s.add("marker", &thing{kind: "marker"})
	s.add("flags", &thing{kind: "flags"})
	s.add("by-scope", &thing{kind: "routes", uses: []string{"c1"}})
	s.add("scope-a", &thing{kind: "scope", uses: []string{"by-scope"}})
	s.add("scope-b", &thing{kind: "scope", uses: []string{"by-scope"}})
	s.add("scoped", &thing{kind: "scoped"})
	s.add("visitor", &thing{kind: "visitor"})
	s.add("server", &thing{kind: "secret"})
	s.add("secure", &thing{kind: "secure", uses: []string{"main", "server"}})
	s.add("visited-routes", &thing{kind: "routes", uses: []string{"c3"}})
	s.add("visited-secret", &thing{kind: "secret"})
	s.add("visited-marker", &thing{kind: "marker"})
	s.add("client", &thing{kind: "secret"})
	s.add("tls", &thing{kind: "tls", uses: []string{"client"}})
	s.add("shop", &thing{kind: "host", uses: []string{"c2"}})
	for i := range edges - 1 {
		s.addEdge(i)
	}
	for i, resource := range []*thing{{kind: "static"}, {kind: "routes", uses: []string{"x0"}}, {kind: "listener", uses: []string{"x1"}}} {
		name := []string{"x0", "x1", "guest"}[i]
		s.resources[name] = resource
		file := choose(s, []string{"guest/a.yaml", "guest/b.json", "guest/deep/c.pb"})
		s.files[file] = append(s.files[file], name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if !strings.HasPrefix(name, "mounted/") {
			envoytest.Publish(s.t, filepath.Join(s.src, name), s.text(name))
		}
	}
	s.mount()
}

// add puts a new resource into a file, and returns the file.
func (s *soak) add(name string, r *thing) (file string) {
	s.resources[name] = r
	r.value = s.rand.IntN(9)
	if file = s.file(); file == "" || len(s.files) < 12 {
		file = filepath.Join(choose(s, folders), fmt.Sprintf("f%d%s", s.rand.IntN(1000), choose(s, suffixes)))
	}
	s.files[file] = append(s.files[file], name)
	return file
}

func (s *soak) addEdge(i int) (files []string) {
	return []string{
		s.add(fmt.Sprint("r", i), &thing{kind: "routes", uses: []string{s.cluster(), s.cluster()}}),
		s.add(fmt.Sprint("l", i), &thing{kind: "listener", uses: []string{fmt.Sprint("r", i)}}),
	}
}

// document returns a resource as YAML.
func (s *soak) document(name string) string {
	r := s.resources[name]
	upstream := s.ports[upstreams[r.value%len(upstreams)]]
	timeout := fmt.Sprintf("connect_timeout: %ds", 1+r.value)
	switch r.kind {
	case "static":
		return staticCluster(name, upstream, timeout)
	case "eds":
		return edsCluster(name, timeout)
	case "endpoints":
		return endpoints(strings.TrimSuffix(name, ".endpoints"), upstream)
	case "tls":
		return staticCluster(name, upstream, timeout, upstreamTLS(r.uses[0]))
	case "main":
		return document("envoy.config.route.v3.RouteConfiguration", `name: main, %s, vhds: {config_source: {ads: {}}}`,
			hosts(r.uses[0], fmt.Sprintf(`{match: {prefix: /eds}, route: {cluster: %s}}`, r.uses[1])))
	case "routes":
		var further []string
		for i, cluster := range r.uses[1:] {
			further = append(further, fmt.Sprintf(`{match: {prefix: "/%d"}, route: {cluster: %s, timeout: %ds}}`, i, cluster, 1+r.value))
		}
		return routes(name, r.uses[0], further...)
	case "host":
		return virtualHost("main", name, "shop.example", r.uses[0])
	case "scope":
		return scope(name, strings.TrimPrefix(name, "scope-"), r.uses[0])
	case "visitor":
		return tlsListener(name, s.ports[name], downstreamTLS("visited-secret"), rds("visited-routes"), "http_filters: ["+discovered("visited-marker", headerMutation)+", "+router+"]")
	case "listener", "secure", "scoped":
		hcm := []string{fmt.Sprintf("server_name: v%d", r.value)}
		if r.kind == "scoped" {
			hcm = append(hcm, srds("tenants"))
		} else {
			hcm = append(hcm, rds(r.uses[0]))
		}
		switch name {
		case "edge":
			hcm = append(hcm, "http_filters: ["+discovered("marker", headerMutation)+", "+router+"]")
		case "secure":
			return tlsListener(name, s.ports[name], downstreamTLS(r.uses[1]), hcm...)
		}
		return listener(name, s.ports[name], hcm...)
	case "marker":
		return extension(name, responseHeader(fmt.Sprint("v", r.value)))
	case "flags":
		return runtimeLayer(name, fmt.Sprintf("{flag: %d}", r.value))
	case "secret":
		return certificate(name, s.pairs[r.value%len(s.pairs)])
	}
	s.t.Fatalf("%s is a %s", name, r.kind)
	return ""
}

// text returns what a file is meant to hold.
func (s *soak) text(name string) string {
	var list []string
	for _, r := range s.files[name] {
		list = append(list, s.document(r))
	}
	return s.encode(name, list...)
}

// encode makes a source file of documents, in the format that its name says.
func (s *soak) encode(name string, list ...string) string {
	s.t.Helper()
	all, err := decode("x.yaml", []byte("resources: ["+strings.Join(list, ", ")+"]"))
	if err != nil {
		s.t.Fatal(err)
	}
	var data []byte
	switch filepath.Ext(name) {
	case ".json":
		data, err = protojson.Marshal(all)
	case ".pb":
		data, err = proto.Marshal(all)
	case ".yaml", ".yml":
		data = []byte(documents(list...))
	default:
		data, err = prototext.Marshal(all)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// choose returns one of a list.
func choose[T any](s *soak, list []T) T { return list[s.rand.IntN(len(list))] }

// pick returns one of some numbers, as milliseconds.
func (s *soak) pick(milliseconds ...int) time.Duration {
	return time.Duration(choose(s, milliseconds)) * time.Millisecond
}

// pause is the pace of the edits: nothing is waited for.
func (s *soak) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

// named returns the resources of some kinds that fit, sorted.
func (s *soak) named(fits func(name string, r *thing) bool) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		if fits(name, s.resources[name]) {
			list = append(list, name)
		}
	}
	return list
}

// cluster returns one that routes can use.
func (s *soak) cluster() string {
	return choose(s, s.named(func(name string, r *thing) bool { return r.kind == "static" && name != "x0" || r.kind == "eds" }))
}

// file returns one that can be edited like any other, or empty where there is none.
func (s *soak) file() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if name != s.bad && !strings.HasPrefix(name, "guest/") {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return choose(s, list)
}

func (s *soak) holder(name string) string {
	for file, list := range s.files {
		if slices.Contains(list, name) {
			return file
		}
	}
	s.t.Fatalf("%s is in no file", name)
	return ""
}
