package watch

import (
	"fmt"
	"os"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// ported returns a listener and a cluster with the given name.
func ported(reusesPort bool, cluster string) string {
	return fmt.Sprintf(`"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: edge
enable_reuse_port: %t
address: {socket_address: {address: 0.0.0.0, port_value: 443}}
filter_chains: [{filters: [{name: echo, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: %s
`, reusesPort, cluster)
}

// TestServedTransitions checks that a transition that Envoys would reject makes the tree invalid, and that
// Envoys keep their resources.
func TestServedTransitions(t *testing.T) {
	serving := func(t *testing.T, change func(*Options)) (*site, *Controller) {
		s := newSite(t, ported(true, "web"))
		s.o.Server, s.o.Out = &critic{}, ""
		change(&s.o)
		c := New(s.o)
		if o := s.pass(c); o.Verdict != Published {
			t.Fatal(o.Message())
		}
		return s, c
	}
	t.Run("refused", func(t *testing.T) {
		s, c := serving(t, func(*Options) {})
		was := s.o.Server.Served()
		s.write(ported(false, "web"))
		o := s.pass(c)
		if o.Verdict != Invalid || len(o.Findings) != 1 || o.Findings[0].Code != "reuse-port-changed" || o.Findings[0].Line != 3 || o.Findings[0].Severity != diag.Error {
			t.Errorf("%s: %v", o.Verdict, o.Findings)
		}
		if s.o.Server.Served() != was {
			t.Error("another snapshot is served")
		}
		s.write(ported(true, "web"))
		if o := s.pass(c); o.Verdict != Published {
			t.Error(o.Message())
		}
	})
	t.Run("disabled", func(t *testing.T) {
		s, c := serving(t, func(o *Options) { o.Source.Disable = []string{"reuse-port-changed"} })
		s.write(ported(false, "web"))
		if o := s.pass(c); o.Verdict != Published {
			t.Errorf("%s: %v", o.Verdict, o.Findings)
		}
	})
	t.Run("for gRPC clients", func(t *testing.T) {
		s, c := serving(t, func(*Options) {})
		c.options.Source.Profiles = []string{string(validate.GRPC)} // for the transition rules only; the tree is one for Envoys
		s.write(ported(false, "web"))
		if o := s.pass(c); o.Verdict != Published {
			t.Errorf("%s: %v", o.Verdict, o.Findings)
		}
	})
	t.Run("with files that somebody removed", func(t *testing.T) {
		s := newSite(t, ported(true, "web"))
		s.o.Server = &critic{}
		c := New(s.o)
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		defer func() { c.Close() }()
		s.pass(c)
		if err := os.RemoveAll(s.o.Out); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		s.write(ported(false, "web"))
		if o := s.pass(c); o.Verdict != Invalid {
			t.Errorf("%s: %v", o.Verdict, o.Findings)
		}
	})
	t.Run("what waits for its trim", func(t *testing.T) {
		// The tree no longer has the cluster. While the cluster is still served, it asks for the secret.
		asks := `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: old
transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: s, sds_config: {ads: {}}}}}}
`
		secret := `---
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: s
`
		parse := func(text string) *xds.Snapshot {
			return load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(text)}).Snapshot()
		}
		c := New(Options{Server: &critic{now: parse(asks + secret + "validation_context: {}\n")}})
		for text, want := range map[string]int{"validation_context: {}\n": 0, "generic_secret: {}\n": 1} {
			if found, err := c.transitions(parse(web+secret+text), nil); err != nil || len(found) != want {
				t.Error(text, found, err)
			}
		}
	})
	t.Run("settings change", func(t *testing.T) {
		s, c := serving(t, func(o *Options) { o.Source.Disable = []string{"reuse-port-changed"} })
		s.o.Source.Disable = nil
		c.Configure(s.o)
		s.write(ported(false, "web"))
		if o := s.pass(c); o.Verdict != Invalid {
			t.Errorf("%s: %v", o.Verdict, o.Findings)
		}
	})
}

// TestServedEdit checks that judging the edit of a cluster takes the same time for any number of served
// listeners.
func TestServedEdit(t *testing.T) {
	guard := &transition.Guard{MaxRemoval: 50}
	allocated := func(n int) float64 {
		resource := func(m proto.Message) *xds.Resource {
			r, err := xds.NewResource(m, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		cluster := func(of time.Duration) *xds.Resource {
			return resource(&clusterv3.Cluster{Name: "web", ConnectTimeout: durationpb.New(of)})
		}
		all := []*xds.Resource{cluster(time.Second)}
		for i := range n {
			all = append(all, resource(&listenerv3.Listener{Name: fmt.Sprint(i), Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: fmt.Sprint("/", i)}}}}))
		}
		server := &critic{now: xds.NewSnapshot(all)}
		c := New(Options{Server: server})
		var edits int
		edit := func() {
			edits++
			is := server.now.Apply(xds.ChangeOf([]xds.Edited{{Was: server.now.Lookup(xds.Cluster, "web"), Is: cluster(time.Duration(edits) * time.Minute)}}))
			c.served = server.now
			if found, err := c.transitions(is, guard); err != nil || len(found) > 0 {
				t.Error(found, err)
			}
			server.now = is
		}
		edit() // the first edit looks at everything
		return testing.AllocsPerRun(5, edit)
	}
	if few, many := allocated(10), allocated(1000); many > 2*few {
		t.Errorf("%.0f allocations beside 10 listeners, %.0f beside 1000", few, many)
	}
}
