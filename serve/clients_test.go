package serve_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"xdspub/event"
	"xdspub/serve/cache"
	"xdspub/tools/envoytest"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// clientTo is a state-of-the-world stream of a node.
type clientTo struct {
	t      *testing.T
	node   *corev3.Node
	stream grpc.ClientStream
	end    context.CancelFunc
	last   *discoveryv3.DiscoveryResponse
}

func dialTo(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func openAt(t *testing.T, conn *grpc.ClientConn, node, method string) *clientTo {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	return &clientTo{t: t, stream: stream, end: end, node: &corev3.Node{
		Id: node, Cluster: "fleet", UserAgentName: "envoy",
		UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40}}},
	}}
}

const adsMethod = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

func (c *clientTo) ask(t *xds.Type, names ...string) {
	c.t.Helper()
	if err := c.stream.SendMsg(&discoveryv3.DiscoveryRequest{Node: c.node, TypeUrl: t.URL(), ResourceNames: names}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clientTo) hear() {
	c.t.Helper()
	c.last = &discoveryv3.DiscoveryResponse{}
	if err := c.stream.RecvMsg(c.last); err != nil {
		c.t.Fatal(err)
	}
}

// answer acknowledges the last response, or rejects it with words.
func (c *clientTo) answer(words string, names ...string) {
	c.t.Helper()
	if err := c.reply(words, names...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clientTo) reply(words string, names ...string) error {
	q := &discoveryv3.DiscoveryRequest{TypeUrl: c.last.GetTypeUrl(), VersionInfo: c.last.GetVersionInfo(), ResponseNonce: c.last.GetNonce(), ResourceNames: names}
	if words != "" {
		q.ErrorDetail = &status.Status{Message: words}
	}
	return c.stream.SendMsg(q)
}

// eventually waits until textOf the clients is want, and returns the clients.
func eventually(t *testing.T, c *cache.Cache, want string) []clients.Client {
	t.Helper()
	var list []clients.Client
	envoytest.Eventually(t, patience, "the clients are "+want, func() (bool, string) {
		list = c.Clients()
		is := textOf(list)
		return is == want, is
	})
	return list
}

// textOf writes clients as "node kind CDS SYNCED, …; …".
func textOf(list []clients.Client) string {
	var all []string
	for _, c := range list {
		text := c.Node + " " + c.Kind
		if !c.Gone.IsZero() {
			text += " gone"
		}
		for _, s := range c.Subscriptions {
			text += fmt.Sprintf(", %s %s", s.API, s.Sync)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func publishTo(t *testing.T, c *cache.Cache, words ...string) *xds.Snapshot {
	t.Helper()
	s := snapshot(t, words)
	if err := c.Publish(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClients follows a client from its first request to its end and back.
func TestClients(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	first := publishTo(t, c, "c/blue", "e/blue")
	a := openAt(t, dialTo(t, socket), "edge", adsMethod)
	a.ask(xds.Cluster)
	a.hear()
	list := eventually(t, c, "edge ads, CDS STALE")
	if is := list[0]; is.Cluster != "fleet" || is.UserAgent != "envoy 1.40.0" || is.Address != "unix:"+socket || is.Since.IsZero() || is.InSync() {
		t.Errorf("%+v", is)
	}
	a.answer("")
	const none = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/none/*" // a name of a resource would have an error
	a.ask(xds.Endpoints, none)
	list = eventually(t, c, "edge ads, CDS SYNCED, EDS NOT SENT")
	cds, eds := list[0].Subscriptions[0], list[0].Subscriptions[1]
	if cds.Acknowledged != first.Version(xds.Cluster) || cds.Sent != cds.Version || !cds.All || len(cds.Names) > 0 || !list[0].InSync() {
		t.Errorf("%+v", cds)
	}
	if eds.Asked != 1 || !slices.Equal(eds.Names, []string{none}) || eds.All || eds.Sent != "" {
		t.Errorf("%+v", eds)
	}
	// The NACK names a resource, and the finding has the position of the resource.
	second := publishTo(t, c, "c/blue", "e/blue", "c/green", "c/greenish")
	a.hear()
	a.answer("can't add green: no")
	list = eventually(t, c, "edge ads, CDS REJECTED, EDS NOT SENT")
	cds = list[0].Subscriptions[0]
	if cds.Acknowledged != first.Version(xds.Cluster) || cds.Sent != second.Version(xds.Cluster) || cds.Rejections != 1 || list[0].InSync() {
		t.Errorf("%+v", cds)
	}
	r := cds.Refusal
	if r == nil || r.Message != "can't add green: no" || r.Version != cds.Sent || r.Time.IsZero() || len(r.Findings) != 1 {
		t.Fatalf("%+v", r)
	}
	if is, want := r.Findings[0].String(), `tree.yaml:5:1: error: client "edge" rejected CDS "green": can't add green: no [refused-by-client]`; is != want {
		t.Errorf("%s\nwant %s", is, want)
	}
	// The client runs the snapshot before until it accepts the next snapshot.
	publishTo(t, c, "c/blue", "e/blue", "c/green@2")
	a.hear()
	eventually(t, c, "edge ads, CDS REJECTED, EDS NOT SENT")
	a.answer("")
	eventually(t, c, "edge ads, CDS SYNCED, EDS NOT SENT")
	// The list has the disconnected client until the client reconnects.
	a.end()
	list = eventually(t, c, "edge ads gone, CDS SYNCED, EDS NOT SENT")
	if list[0].Gone.IsZero() || list[0].Subscriptions[0].Acknowledged == "" {
		t.Errorf("%+v", list[0])
	}
	b := openAt(t, dialTo(t, socket), "edge", adsMethod)
	b.ask(xds.Cluster)
	eventually(t, c, "edge ads, CDS STALE")
}

// TestClientsOfOneNode checks that two connections of a node are two clients, and that the streams of
// singleton services over a connection are one client.
func TestClientsOfOneNode(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	publishTo(t, c, "c/blue", "e/blue", "e/green")
	one, other := dialTo(t, socket), dialTo(t, socket)
	for _, conn := range []*grpc.ClientConn{one, other} {
		cds := openAt(t, conn, "edge", services[xds.Cluster])
		cds.ask(xds.Cluster)
		cds.hear()
		cds.answer("")
	}
	for _, name := range []string{"blue", "green", "none"} {
		eds := openAt(t, one, "edge", services[xds.Endpoints])
		eds.ask(xds.Endpoints, name)
		if name != "none" {
			eds.hear()
		}
		if name == "green" {
			eds.answer("", name)
		}
		envoytest.Eventually(t, patience, "the client asks for "+name, func() (bool, string) {
			list := c.Clients()
			return strings.Contains(fmt.Sprint(list), name), fmt.Sprint(list)
		})
	}
	list := eventually(t, c, "edge grpc, CDS SYNCED, EDS STALE; edge grpc, CDS SYNCED")
	if eds := list[0].Subscriptions[1]; eds.Asked != 3 || !slices.Equal(eds.Names, []string{"blue", "green", "none"}) {
		t.Errorf("%+v", eds)
	}
	one.Close()
	envoytest.Eventually(t, patience, "one client is gone, with all types", func() (bool, string) {
		is := textOf(c.Clients())
		return strings.HasPrefix(is, "edge grpc, CDS SYNCED; edge grpc gone, CDS SYNCED, EDS "), is
	})
}

// TestRejectionsAreLoggedOnce checks that the rejections of a version by several clients of a node are logged
// once. After the rejection of another version, the first version is logged again.
func TestRejectionsAreLoggedOnce(t *testing.T) {
	var log syncBuffer
	c := cache.New(cache.Options{Log: event.New(slog.NewTextHandler(&log, nil))})
	socket := listen(t, c)
	rejections := uint64(0)
	for i, content := range []string{"1", "2", "1"} {
		publishTo(t, c, "c/blue@"+content)
		for range 3 {
			a := openAt(t, dialTo(t, socket), "edge", adsMethod)
			a.ask(xds.Cluster)
			a.hear()
			a.answer("no\n" + strings.Repeat("x", 10_000))
			rejections++
			envoytest.Eventually(t, patience, "the NACK is counted and logged", func() (bool, string) {
				list := c.Rejections()
				return len(list) == 1 && list[0] == clients.Rejections{Node: "edge", API: "CDS", Count: rejections} && strings.Count(log.String(), "event=response-rejected") > i, fmt.Sprint(list)
			})
			a.end()
		}
	}
	text := log.String()
	if n := strings.Count(text, "event=response-rejected"); n != 3 || len(text) > 20_000 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// TestRejectionAfterAnother checks that a rejection is logged again, once, if the client has accepted another
// version since the last rejection.
func TestRejectionAfterAnother(t *testing.T) {
	var log syncBuffer
	c := cache.New(cache.Options{Log: event.New(slog.NewTextHandler(&log, nil))})
	a := openAt(t, dialTo(t, listen(t, c)), "edge", adsMethod)
	a.ask(xds.Cluster)
	publishTo(t, c, "c/blue@1")
	a.hear()
	a.answer("")
	for i := range 2 {
		publishTo(t, c, "c/blue@2")
		a.hear()
		a.answer("no\n such\tport\n")
		line := `error="no such port"`
		envoytest.Eventually(t, patience, "the NACK is logged", func() (bool, string) {
			return strings.Count(log.String(), line) > i, log.String()
		})
		publishTo(t, c, "c/blue@1")
		a.hear()
		a.answer("")
		eventually(t, c, "edge ads, CDS SYNCED")
	}
	if n := strings.Count(log.String(), "event=response-rejected"); n != 2 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
