package watch

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/check"
	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/serve/cache"
	"xdspub/source/load"
	"xdspub/xds"
)

// restarted publishes web, edits the output directory by edit, and returns a Controller of a later process with
// its Server and its log.
func restarted(t *testing.T, edit func(out string)) (*site, *Controller, *critic, *bytes.Buffer) {
	s := newSite(t, web)
	first := New(s.o)
	if err := first.Open(); err != nil {
		t.Fatal(err)
	}
	if o := s.pass(first); o.Verdict != Published {
		t.Fatal(o.Message())
	}
	first.Close()
	edit(s.o.Out)
	server, log := &critic{}, new(bytes.Buffer)
	s.o.Server, s.o.Log = server, event.New(slog.NewTextHandler(log, nil))
	c := New(s.o)
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s, c, server, log
}

// TestRestored checks that a new Server serves the snapshot in the output directory, and then the source tree
// as a change of that snapshot.
func TestRestored(t *testing.T) {
	s, c, server, _ := restarted(t, func(string) {})
	s.write(other)
	if o := s.pass(c); o.Verdict != Published {
		t.Fatal(o.Message())
	}
	if server.restored == nil || server.restored.Lookup(xds.Cluster, "web") == nil || server.restored.Lookup(xds.Cluster, "other") != nil {
		t.Error("what was published is not restored")
	}
	if server.now.Lookup(xds.Cluster, "other") == nil || len(server.served) != 1 {
		t.Errorf("served %v", server.served)
	}
	was := server.restored
	s.write(web)
	if s.pass(c); server.restored != was {
		t.Error("restored once more")
	}
}

// TestRestoredVariants checks a tree with variants, of which the output directory has those of one kind of
// client. A new Server serves all variants of the tree, and only those published resources that the tree no
// longer has.
func TestRestoredVariants(t *testing.T) {
	const variants = `
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: other, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: other, connect_timeout: 2s}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: other, dynamic_parameter_constraints: {not_constraints: {constraint: {key: env, value: prod}}}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: other, connect_timeout: 1s}
`
	s, c, server, _ := restarted(t, func(string) {})
	s.write(variants)
	if o := s.pass(c); o.Verdict != Published {
		t.Fatal(o.Message())
	}
	of := func(name string) int { return len(server.restored.Named(xds.Key{Type: xds.Cluster, Name: name})) }
	if server.restored == nil || of("web") != 1 || of("other") != 2 {
		t.Errorf("restored: %v", server.restored.All())
	}
	if server.now.Lookup(xds.Cluster, "web") != nil {
		t.Error("what went is not removed")
	}
}

// TestRestoredSecrets checks that dropped secrets are not restored, because the output directory doesn't
// record their clients.
func TestRestoredSecrets(t *testing.T) {
	parse := func(text string) *xds.Snapshot {
		return load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(text)}).Snapshot()
	}
	was := parse(`
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web}
- {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: key, generic_secret: {secret: {inline_string: k}}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, request_headers_to_add: [{header: {key: authorization, value: Bearer k}}]}
`)
	if is := withRetired(parse("[]"), was).All(); was.Len() != 3 || len(is) != 1 || is[0].Name != "web" {
		t.Errorf("%d resources become %v", was.Len(), is)
	}
}

// TestRestoredForm checks that an output directory with inlined endpoints is restored as clients had it,
// except for changes.
func TestRestoredForm(t *testing.T) {
	const (
		cluster   = "{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %[1]s, type: EDS, eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}}\n---\n"
		endpoints = "{\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: %[1]s, policy: {overprovisioning_factor: %[2]d}}\n---\n"
	)
	tree := func(factor int) string {
		return fmt.Sprintf(cluster+endpoints, "web", 150) + fmt.Sprintf(cluster+endpoints, "other", factor)
	}
	s := newSite(t, tree(150))
	s.o.Endpoints = planner.EndpointsInline
	server := &critic{}
	s.o.Server = server
	publish := func(text string) {
		t.Helper()
		s.write(text)
		c := New(s.o)
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if o := s.pass(c); o.Verdict != Published {
			t.Fatal(o.Message())
		}
	}
	publish(tree(150))
	was := server.now
	server.now = nil
	publish(tree(160))
	if server.restored == nil {
		t.Fatal("nothing is restored")
	}
	for _, of := range []*xds.Type{xds.Cluster, xds.Endpoints} {
		if is := server.restored.Lookup(of, "web"); is == nil || !is.Same(was.Lookup(of, "web")) {
			t.Errorf("%s: restored is %v", of.API, is)
		}
	}
	if is := server.restored.Lookup(xds.Endpoints, "other"); is != nil || server.restored.Lookup(xds.Cluster, "other").AsksFor(xds.Endpoints) {
		t.Error("the endpoints that have changed are not in their cluster")
	}
}

// TestRestoredDamage checks that damaged parts of the output directory are not restored, and do not keep the
// Server from serving the source tree.
func TestRestoredDamage(t *testing.T) {
	clusters := func(out string) string { return filepath.Join(out, "cds/cds.json") }
	for name, tt := range map[string]struct {
		edit     func(t *testing.T, out string)
		restored bool
		log      string
	}{
		"an empty directory": {func(t *testing.T, out string) {
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}, false, ""},
		"no clusters": {func(t *testing.T, out string) {
			if err := os.Remove(clusters(out)); err != nil {
				t.Fatal(err)
			}
		}, false, ""},
		"no JSON": {func(t *testing.T, out string) { overwrite(t, clusters(out), "{") }, false, "published-file-unreadable"},
		"an error": {func(t *testing.T, out string) {
			text, err := os.ReadFile(clusters(out))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, clusters(out), strings.Replace(string(text), `"name": "web"`, `"name": "web", "connect_timeout": "-1s"`, 1))
		}, false, `left_out="cluster \"web\""`},
		"a folder of somebody else": {func(t *testing.T, out string) {
			if err := os.Mkdir(filepath.Join(out, "lost+found"), 0); err != nil {
				t.Fatal(err)
			}
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, server, log := restarted(t, func(out string) { tt.edit(t, out) })
			s.write(other)
			if o := s.pass(c); o.Verdict != Published || server.now == nil || server.now.Lookup(xds.Cluster, "other") == nil {
				t.Fatal(o.Message(), server.served, log)
			}
			if (server.restored != nil) != tt.restored || !strings.Contains(log.String(), tt.log) {
				t.Errorf("restored: %t; log: %s", server.restored != nil, log)
			}
		})
	}
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFirstTakenBack checks that, if clients reject the first snapshot after a restore, clients and files go
// back to the restored snapshot.
func TestFirstTakenBack(t *testing.T) {
	s, c, server, _ := restarted(t, func(string) {})
	server.rejects = "other"
	s.write(other)
	if o := s.pass(c); o.Verdict != RefusedByEnvoy || !o.TakenBack || !o.Restored {
		t.Errorf("%s: %s", o.Verdict, o.Message())
	}
	text, err := os.ReadFile(filepath.Join(s.o.Out, "cds/cds.json"))
	if err != nil || !strings.Contains(string(text), `"web"`) {
		t.Errorf("%s, %v", text, err)
	}
	if o := s.pass(c); o.Verdict != Held {
		t.Errorf("%s: %s", o.Verdict, o.Message())
	}
}

// TestNothingToRestore checks that an unchanged output directory is not read back.
func TestNothingToRestore(t *testing.T) {
	s, c, server, _ := restarted(t, func(string) {})
	if o := s.pass(c); o.Verdict != Published || server.restored != nil || server.now == nil {
		t.Errorf("%s; restored: %t", o.Message(), server.restored != nil)
	}
}

// TestRestoredAsServed checks that restored resources have the versions that clients had from the source
// tree.
func TestRestoredAsServed(t *testing.T) {
	for _, name := range []string{"ads", "legacy", "quickstart", "static-import"} {
		s := newSite(t, web)
		s.o.Source = check.Options{Path: filepath.Join("..", "examples", name), Rules: check.Rules{Profiles: []string{check.Streams, check.Files}}}
		server := &critic{}
		s.o.Server = server
		c := New(s.o)
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if o := s.pass(c); o.Verdict != Published {
			t.Fatal(name, o.Message())
		}
		restored, err := c.pipeline.Published()
		if err != nil {
			t.Fatal(err)
		}
		versions := func(s *xds.Snapshot) (all []string) {
			served := cache.New(cache.Options{})
			if err := served.Publish(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			for _, of := range xds.Types {
				poll, _, err := served.Reader().Poll(cache.Question{Type: of, All: true})
				if err != nil {
					t.Fatal(err)
				}
				is, _, _ := poll.Watch()
				all = append(all, of.API+" "+is.Version(of))
			}
			return all
		}
		if was, is := versions(server.now), versions(restored); !slices.Equal(was, is) {
			t.Errorf("%s: clients had %v and get %v", name, was, is)
		}
	}
}
