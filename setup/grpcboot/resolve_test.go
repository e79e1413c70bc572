package grpcboot_test

import (
	"cmp"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"

	"xdspub/setup/grpcboot"
)

// named is a bootstrap with an authority that has its own servers.
const named = `{
  "xds_servers": [{"server_uri": "unix:/nonexistent", "channel_creds": [{"type": "insecure"}]}],
  "node": {"id": "a"},
  "server_listener_resource_name_template": "server/%s",
  "client_default_listener_resource_name_template": "TEMPLATE",
  "authorities": {
    "b": {"xds_servers": [{"server_uri": "unix:/nonexistent2", "channel_creds": [{"type": "insecure"}]}]},
    "c": {"client_listener_resource_name_template": "xdstp://c/envoy.config.listener.v3.Listener/own/%s"}
  }
}`

const listenerOf = "xdstp://b/envoy.config.listener.v3.Listener/"

// resolutions are targets and addresses, with the listeners that clients and servers ask for.
var resolutions = []struct {
	target, template string
	// listener is the name of the listener. byGo is the name that grpc-go asks for; "" means the same name.
	listener, byGo string
	// second means that the servers of authority b are asked.
	second bool
	err    string
}{
	{target: "xds:///a", template: "%s", listener: "a"},
	{target: "xds:///a", template: "", listener: "a"},
	{target: "xds:///a", template: "%s.%s", listener: "a.a"},
	{target: "xds:///a", template: "one", listener: "one"},
	{target: "xds:a", template: "%s", listener: "a"},
	{target: "xds:/a", template: "%s", listener: "a"},
	{target: "xds:////a", template: "%s", listener: "/a"},
	{target: "xds:///a/b:80", template: "%s", listener: "a/b:80"},
	{target: "xds:///a%20b", template: "%s", listener: "a b"},
	{target: "xds:///a?b=c#d", template: "%s", listener: "a"},
	{target: "xds:///a", template: listenerOf + "%s", listener: listenerOf + "a", second: true},
	{target: "xds:///a/b:80", template: listenerOf + "%s", listener: listenerOf + "a/b:80", second: true},
	{target: "xds:///a%20b[ü]%25", template: listenerOf + "%s", listener: listenerOf + "a%20b%5B%C3%BC%5D%25", second: true},
	{target: "xds:///a,b;(c)!*'", template: listenerOf + "%s", listener: listenerOf + "a,b;(c)!*'", byGo: listenerOf + "a,b;%28c%29%21%2A%27", second: true},
	{target: "xds:///a+b=c&d$e@f", template: listenerOf + "%s", listener: listenerOf + "a+b=c&d$e@f", second: true},
	{target: "xds:///a", template: listenerOf + "%s?b=c&a=d", listener: listenerOf + "a?b=c&a=d", byGo: listenerOf + "a?a=d&b=c", second: true},
	{target: "xds://b/a", listener: listenerOf + "a", second: true},
	{target: "xds://c/a", listener: "xdstp://c/envoy.config.listener.v3.Listener/own/a"},
	{target: "xds://d/a", err: `the bootstrap has no authority "d": a client makes no connection`},
	{target: "xds:///a", template: "xdstp://%s/envoy.config.listener.v3.Listener/a", err: `the name xdstp://a/envoy.config.listener.v3.Listener/a has the authority "a", which authorities does not have`},
	{target: "xds:///", err: `"xds:///" names nothing: write xds:///NAME or xds://AUTHORITY/NAME`},
	{target: "dns:///a", err: `"dns:///a" is no target of xDS: write xds:///NAME or xds://AUTHORITY/NAME`},
	{target: "%", err: `"%" is no target of xDS: write xds:///NAME or xds://AUTHORITY/NAME`},
}

// bootstrap returns the bootstrap of a case, with the sockets first and second as servers.
func bootstrap(template, first, second string) []byte {
	return []byte(strings.NewReplacer("TEMPLATE", template, "unix:/nonexistent2", "unix:"+second, "unix:/nonexistent", "unix:"+first).Replace(named))
}

// TestTarget: Target returns the listener and the server that grpc-go asks for.
func TestTarget(t *testing.T) {
	first, second := newAsked(t), newAsked(t)
	for _, c := range resolutions {
		t.Run(c.target+" by "+c.template, func(t *testing.T) {
			text := bootstrap(c.template, first.socket, second.socket)
			r, err := grpcboot.Parse("b.json", text).Config.Target(c.target)
			if err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			server := first
			if c.second {
				server = second
			}
			if r.Listener != c.listener || r.ByGo != c.byGo || len(r.Servers) != 1 || r.Servers[0].URI != "unix:"+server.socket || r.OfServer || (r.Authority == nil) != !strings.HasPrefix(c.listener, "xdstp:") {
				t.Errorf("%+v", r)
			}
			resolver, err := xds.NewXDSResolverWithConfigForTesting(text)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := grpc.NewClient(c.target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.Connect()
			if name := server.next(t); name != cmp.Or(c.byGo, c.listener) {
				t.Errorf("grpc-go asks for %q", name)
			}
		})
	}
}

// TestAddress: Address returns the listener that a server of grpc-go asks for.
func TestAddress(t *testing.T) {
	first, second := newAsked(t), newAsked(t)
	for address, want := range map[string]string{"127.0.0.1:0": "server/127.0.0.1:", "[::1]:0": "server/[::1]:", "[::]:0": "server/[::]:"} {
		text := bootstrap("%s", first.socket, second.socket)
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		r, err := grpcboot.Parse("b.json", text).Config.Address(l.Addr().String())
		if err != nil || !strings.HasPrefix(r.Listener, want) || !r.OfServer {
			t.Errorf("%s: %+v, %v", address, r, err)
		}
		g, err := xds.NewGRPCServer(xds.BootstrapContentsForTesting(text))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = g.Serve(l) }()
		if name := first.next(t); name != r.Listener {
			t.Errorf("grpc-go asks for %q, and not %q", name, r.Listener)
		}
		g.Stop()
	}
	for _, address := range []string{"localhost:80", ":80", "127.0.0.1", "::1:80:a"} {
		if _, err := grpcboot.Parse("b.json", []byte(named)).Config.Address(address); err == nil || !strings.Contains(err.Error(), "write IP:PORT") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := new(grpcboot.Config).Address("127.0.0.1:80"); err == nil || !strings.Contains(err.Error(), "has no server_listener_resource_name_template") {
		t.Errorf("without a template: %v", err)
	}
}

// asked is an xDS server that records the listeners that clients ask for, and answers nothing.
type asked struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	socket string
	names  chan string
}

func newAsked(t *testing.T) *asked {
	t.Helper()
	dir, err := os.MkdirTemp("", "xds-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &asked{socket: filepath.Join(dir, "s"), names: make(chan string, 1)}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, a)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return a
}

func (a *asked) StreamAggregatedResources(s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	r, err := s.Recv()
	if err != nil {
		return err
	}
	a.names <- strings.Join(r.GetResourceNames(), " ")
	<-s.Context().Done()
	return nil
}

// next waits for a client, and returns the listener that it asks for.
func (a *asked) next(t *testing.T) string {
	t.Helper()
	select {
	case name := <-a.names:
		return name
	case <-time.After(time.Minute):
		t.Fatal("nobody asks")
		return ""
	}
}

// TestTargetByCore: C-core asks for the same listener and server. The test uses its client for Python, which make
// interop installs.
func TestTargetByCore(t *testing.T) {
	python := filepath.Join(os.Getenv("XDSPUB_INTEROP"), "python/bin/python")
	for _, c := range resolutions {
		if os.Getenv("XDSPUB_INTEROP") == "" || c.listener == "" {
			continue
		}
		t.Run(c.target+" by "+c.template, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "../../e2e/interop/python/client.py", c.target)
			cmd.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP_CONFIG="+string(bootstrap(c.template, "/nonexistent", "/nonexistent2")))
			cmd.Stdin = strings.NewReader("\n")
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), "(LDS resource "+c.listener+": ") {
				t.Errorf("it says %s (%v)", out, err)
			}
		})
	}
}
