package envoy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"xdspub/envoy"
	"xdspub/tools/envoytest"
)

const (
	patience = 2 * time.Minute
	typeURL  = "type.googleapis.com/"
)

// object is JSON as Envoy reads it.
type object = map[string]any

// fixture is a directory of files that an Envoy reads.
type fixture struct {
	t   testing.TB
	dir string
}

// newFixture returns a fixture with CDS and LDS files of version v1, without resources.
func newFixture(t testing.TB) *fixture {
	s := &fixture{t: t, dir: t.TempDir()}
	s.publish("cds", "v1")
	s.publish("lds", "v1")
	return s
}

func (s *fixture) path(folder string) string { return filepath.Join(s.dir, folder, "file.json") }

// source returns the config source of the file in a folder.
func (s *fixture) source(folder string) object {
	return object{"path_config_source": object{"path": s.path(folder)}}
}

func (s *fixture) publish(folder, version string, resources ...object) {
	s.t.Helper()
	text, err := json.Marshal(object{"version_info": version, "resources": resources})
	if err != nil {
		s.t.Fatal(err)
	}
	envoytest.Publish(s.t, s.path(folder), string(text))
}

// bootstrap returns a bootstrap for the fixture. The fields of more replace its fields.
func (s *fixture) bootstrap(more object) []byte {
	s.t.Helper()
	b := object{
		"node":              object{"id": "test", "cluster": "test"},
		"admin":             object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}}},
		"dynamic_resources": object{"cds_config": s.source("cds"), "lds_config": s.source("lds")},
	}
	for key, value := range more {
		b[key] = value
	}
	text, err := json.Marshal(b)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// start runs an Envoy on the fixture.
func (s *fixture) start(more object, args ...string) (*envoytest.Envoy, *envoy.Admin) {
	s.t.Helper()
	e := envoytest.Start(s.t, envoytest.Options{Bootstrap: s.bootstrap(more), Args: args})
	return e, admin(s.t, "http://"+e.AdminAddress(s.t))
}

func admin(t testing.TB, url string) *envoy.Admin {
	t.Helper()
	a, err := envoy.NewAdmin(url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// static returns a cluster without endpoints.
func static(name string) object {
	return object{"@type": typeURL + "envoy.config.cluster.v3.Cluster", "name": name, "connect_timeout": "1s"}
}

// listener returns a listener with a connection manager.
func listener(name string, port int, manager object) object {
	hcm := object{
		"@type":        typeURL + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":  "h",
		"http_filters": []any{router},
	}
	for key, value := range manager {
		hcm[key] = value
	}
	return object{
		"@type":         typeURL + "envoy.config.listener.v3.Listener",
		"name":          name,
		"address":       object{"socket_address": object{"address": "127.0.0.1", "port_value": port}},
		"filter_chains": []any{object{"filters": []any{object{"name": "h", "typed_config": hcm}}}},
	}
}

var router = object{"name": "router", "typed_config": object{"@type": typeURL + "envoy.extensions.filters.http.router.v3.Router"}}

func routes(name, cluster string) object {
	action := object{"match": object{"prefix": "/"}, "direct_response": object{"status": 200}}
	if cluster != "" {
		action = object{"match": object{"prefix": "/"}, "route": object{"cluster": cluster}}
	}
	return object{
		"@type":         typeURL + "envoy.config.route.v3.RouteConfiguration",
		"name":          name,
		"virtual_hosts": []any{object{"name": "v", "domains": []any{"*"}, "routes": []any{action}}},
	}
}

func read(t testing.TB, a *envoy.Admin, roots ...string) *envoy.Observation {
	t.Helper()
	var o *envoy.Observation
	envoytest.Eventually(t, patience, "Envoy answers", func() (bool, string) {
		var err error
		if o, err = a.Read(t.Context(), roots); err == nil {
			return true, ""
		}
		if _, ok := errors.AsType[*envoy.TimeoutError](err); !ok { // a busy machine may take longer
			t.Fatal(err)
		}
		return false, err.Error()
	})
	return o
}

// eventually waits for an observation for which ok returns true.
func eventually(t testing.TB, a *envoy.Admin, what string, roots []string, ok func(*envoy.Observation) bool) {
	t.Helper()
	envoytest.Eventually(t, patience, what, func() (bool, string) {
		o, err := a.Read(t.Context(), roots)
		if err != nil {
			return false, err.Error()
		}
		return ok(o), fmt.Sprintf("%+v", *o)
	})
}
