package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// origin stands in for a source file.
type origin struct{}

func (origin) Range(path xds.Path) diag.Range {
	return diag.PointAt(diag.Position{File: "f", Line: 1, Column: len(path) + 1})
}

func (o origin) InWrapper(xds.Path) diag.Range { return o.Range("") }

func (o origin) Constraints(bool) diag.Range { return o.Range("") }

func (origin) Correct(xds.Path, diag.Correction) (e diag.Edit, ok bool) { return }

func (origin) Shows(xds.Path) bool { return false }

func resource(t testing.TB, m proto.Message, name string) *xds.Resource {
	t.Helper()
	r, err := xds.NewResource(m, name, origin{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewResource(t *testing.T) {
	for _, c := range []struct {
		message proto.Message
		wrapper string
		want    string
	}{
		{&clusterv3.Cluster{Name: "c"}, "", `cluster "c"`},
		{&clusterv3.Cluster{Name: "c"}, "other", `cluster "c"`}, // Envoy goes by the inner name
		{&clusterv3.Cluster{}, "", `cluster without a name`},
		{&routev3.VirtualHost{Name: "h"}, "routes/h.example", `virtual host "routes/h.example"`},
		{&routev3.VirtualHost{Name: "h"}, "", `virtual host "h"`},
	} {
		r := resource(t, c.message, c.wrapper)
		if r.String() != c.want || r.Message() != c.message {
			t.Errorf("resource %s, want %s", r, c.want)
		}
	}
	if r, err := xds.NewResource(&corev3.Node{}, "n", origin{}); err == nil {
		t.Errorf("a node is %s", r)
	}
}

func TestResourceDiagnostic(t *testing.T) {
	key := &tlsv3.TlsCertificate{PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "key"}}}
	for _, c := range []struct {
		message   proto.Message
		sensitive bool
	}{
		{&clusterv3.Cluster{Name: "x"}, false},
		{&tlsv3.Secret{Name: "x"}, true},
		{&clusterv3.Cluster{Name: "x", TransportSocket: &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: packed(t, &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{key}}})}}}, true},
	} {
		r := resource(t, c.message, "")
		want := diag.Diagnostic{
			Code: "rule", Position: diag.Position{File: "f", Line: 1, Column: 5}, End: diag.End{EndLine: 1, EndColumn: 5}, Path: "name", Message: "wrong",
			Resource: diag.Resource{Type: r.Type.URL(), Name: "x"}, Sensitive: c.sensitive,
		}
		if diff := cmp.Diff(want, r.Diagnostic("rule", "name", "wrong")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r, diff)
		}
	}
}

// TestCredentialDiagnostic: a finding about the value of a header with a credential does not contain the credential.
func TestCredentialDiagnostic(t *testing.T) {
	add := func(key, value string) *corev3.HeaderValueOption {
		return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: key, Value: value}}
	}
	r := resource(t, &routev3.RouteConfiguration{Name: "r", RequestHeadersToAdd: []*corev3.HeaderValueOption{add("Authorization", "hunter2"), add("x-name", "web")}}, "")
	for path, hidden := range map[xds.Path]bool{
		"request_headers_to_add[0].header.value": true, "request_headers_to_add[0].header": true,
		"request_headers_to_add[1].header.value": false, "name": false, "": false,
	} {
		d := r.Diagnostic("rule", path, `value "hunter2" is wrong`)
		if d.Sensitive != hidden || strings.Contains(d.Message, "hunter2") == hidden {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

func TestSnapshot(t *testing.T) {
	var (
		l     = resource(t, &listenerv3.Listener{Name: "l"}, "")
		b     = resource(t, &clusterv3.Cluster{Name: "b"}, "")
		a1    = resource(t, &clusterv3.Cluster{Name: "a", AltStatName: "first"}, "")
		a2    = resource(t, &clusterv3.Cluster{Name: "a", AltStatName: "second"}, "")
		empty = resource(t, &clusterv3.Cluster{}, "")
		s     = resource(t, &tlsv3.Secret{Name: "a"}, "")
	)
	given := []*xds.Resource{l, b, a1, s, a2, empty}
	kept := slices.Clone(given)
	snapshot := xds.NewSnapshot(given)
	if !slices.Equal(given, kept) {
		t.Error("NewSnapshot reorders what it is given")
	}
	if !slices.Equal(snapshot.All(), []*xds.Resource{s, empty, a1, a2, b, l}) {
		t.Errorf("all: %v", snapshot.All())
	}
	if !slices.Equal(snapshot.Of(xds.Cluster), []*xds.Resource{empty, a1, a2, b}) {
		t.Errorf("clusters: %v", snapshot.Of(xds.Cluster))
	}
	if snapshot.Len() != 6 {
		t.Errorf("%d resources", snapshot.Len())
	}
	for _, c := range []struct {
		t    *xds.Type
		name string
		want *xds.Resource
	}{
		{xds.Cluster, "a", a1}, // the first of two
		{xds.Secret, "a", s},
		{xds.Cluster, "", empty},
		{xds.Listener, "a", nil},
		{xds.Runtime, "", nil},
	} {
		if got := snapshot.Lookup(c.t, c.name); got != c.want {
			t.Errorf("%s %q is %v, want %v", c.t, c.name, got, c.want)
		}
	}

	none := xds.NewSnapshot(nil)
	if none.Len() != 0 || none.All() != nil || none.Of(xds.Cluster) != nil || none.Lookup(xds.Cluster, "") != nil {
		t.Error("an empty Snapshot holds something")
	}
}

func TestKnown(t *testing.T) {
	known := xds.BootstrapFactsOf(parse(t, &bootstrapv3.Bootstrap{}, `{
	  "static_resources": {"clusters": [{"name": "c"}, {"name": "d"}], "listeners": [{"name": "l", "address": {"socket_address": {"address": "::1", "port_value": 80}}}, {"address": {"socket_address": {"address": "::1", "port_value": 81}}}], "secrets": [{"name": "s"}, {}]},
	  "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 9901}}},
	  "cluster_manager": {"local_cluster_name": "c"},
	  "bootstrap_extensions": [{"name": "internal", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener"}}],
	  "layered_runtime": {"layers": [
	    {"name": "layer", "rtds_layer": {"name": "rtds"}},
	    {"name": "static", "static_layer": {}}]}}`))
	type row struct {
		t    *xds.Type
		name string
	}
	for r, want := range map[row]bool{
		{xds.Cluster, "c"}: true, {xds.Cluster, "d"}: true, {xds.Cluster, "l"}: false, {xds.Cluster, ""}: false,
		{xds.Listener, "l"}: true, {xds.Listener, "c"}: false, {xds.Listener, ""}: false, {xds.Secret, ""}: false,
		{xds.Secret, "s"}: true, {xds.Endpoints, "c"}: false,
		{xds.Runtime, "rtds"}: true, {xds.Runtime, "layer"}: false, {xds.Runtime, "static"}: false,
	} {
		if got := known.Has(r.t, r.name); got != want {
			t.Errorf("%s %q: %v", r.t, r.name, got)
		}
	}
	var sockets []string
	for _, s := range known.Sockets() {
		sockets = append(sockets, fmt.Sprintf("%s %v %s", s.Socket, s.Admin, s.Listener))
	}
	if diff := cmp.Diff([]string{"127.0.0.1:9901 true ", "[::1]:80 false l", "[::1]:81 false "}, sockets); diff != "" {
		t.Error(diff)
	}
	if !known.HasExtension("envoy.extensions.bootstrap.internal_listener.v3.InternalListener") || known.HasExtension("") {
		t.Error("bootstrap extensions are not known as they are")
	}
	if got := known.LocalCluster(); got != "c" {
		t.Errorf("local cluster %q", got)
	}
	if (xds.BootstrapFacts{}).Has(xds.Cluster, "c") || xds.BootstrapFactsOf(nil).Has(xds.Cluster, "c") {
		t.Error("without a bootstrap something is known")
	}
}
