package csds_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"xdspub/diag"
	"xdspub/internal/expiry"
	"xdspub/serve/csds"
	"xdspub/watch/control"
	"xdspub/xds/clients"
)

func some() []clients.Client {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return []clients.Client{
		{Node: "edge-1", Cluster: "edge", UserAgent: "envoy 1.40.0", Address: "10.0.0.1:4711", Kind: "ads", Since: at, Subscriptions: []clients.Subscription{
			{Sync: clients.Rejected, API: "LDS", All: true, Names: []string{}, Version: "v2", Acknowledged: "v1", Sent: "v2", Since: at, Rejections: 1 << 40, Refusal: &clients.Refusal{
				Version: "v2", Time: at, Message: "no", Findings: diag.List{{Code: "refused-by-client", Position: diag.Position{File: "a.yaml", Line: 3, Column: 1}, End: diag.End{EndLine: 3, EndColumn: 1}, Related: []diag.Related{}, Fixes: []diag.Fix{}, Resource: diag.Resource{Name: "in"}, Message: `rejected LDS "in": no`}},
			}},
			{Sync: clients.NotSent, API: "RTDS", Names: []string{"a"}, Asked: 1, Since: at},
		}},
		{Node: "web", Kind: "delta-grpc", Since: at, Gone: at.Add(time.Hour), Subscriptions: []clients.Subscription{}},
	}
}

// itself returns a server with an invalid source tree.
func itself() csds.Server {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	finding := diag.Diagnostic{Code: "unknown-field", Position: diag.Position{File: "a.yaml", Line: 3, Column: 1}, End: diag.End{EndLine: 3, EndColumn: 1}, Related: []diag.Related{}, Fixes: []diag.Fix{}, Message: "no"}
	return csds.Server{
		Watch: control.Watch{PID: 1, Source: "/tree", Since: at, Serves: true, Snapshot: "v1", SnapshotSince: at, Refused: &control.Refusal{
			Since: at, Message: "invalid", Errors: 1, Findings: diag.List{finding},
		}},
		Certificate: expiry.Validity{From: at, Until: at.Add(time.Hour)},
	}
}

// TestManyFindings checks that the answer about a tree with many findings has the first findings, and the
// number of all.
func TestManyFindings(t *testing.T) {
	is := itself()
	for len(is.Watch.Refused.Findings) < 10_000 {
		d := is.Watch.Refused.Findings[0]
		d.Message = strings.Repeat("x", 1000)
		is.Watch.Refused.Findings = append(is.Watch.Refused.Findings, d)
	}
	is.Watch.Refused.Errors = len(is.Watch.Refused.Findings)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	csds.Register(g, func(context.Context) (csds.Answer, error) { return csds.Answer{Server: is}, nil })
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	answer, err := csds.Ask(t.Context(), "unix:"+socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := answer.Server.Watch.Refused; r.Errors != 10_000 || len(r.Findings) < 100 || len(r.Findings) > 300 {
		t.Errorf("%d errors, %d findings", r.Errors, len(r.Findings))
	}
}

// listen serves clients, and returns the address.
func listen(t testing.TB, all []clients.Client) string {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	csds.Register(g, func(context.Context) (csds.Answer, error) { return csds.Answer{Server: itself(), Clients: all}, nil })
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return "unix:" + socket
}

// TestAsk checks that an answer arrives unchanged.
func TestAsk(t *testing.T) {
	answer, err := csds.Ask(t.Context(), listen(t, some()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&csds.Answer{Server: itself(), Clients: some()}, answer); diff != "" {
		t.Error(diff)
	}
	_, err = csds.Ask(t.Context(), "unix:"+filepath.Join(t.TempDir(), "none"), nil)
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
}

// TestManyClients checks that an answer can describe 10,000 clients that subscribe to many names.
func TestManyClients(t *testing.T) {
	names := make([]string, clients.MostNames)
	for i := range names {
		names[i] = fmt.Sprintf("outbound|8080||service-%d.namespace.svc.cluster.local", i)
	}
	list := make([]clients.Client, 10_000)
	for i := range list {
		list[i] = clients.Client{Node: fmt.Sprint("sidecar~10.0.0.1~", i), Kind: "ads", UserAgent: "envoy 1.40.0", Address: "10.0.0.1:4711"}
		for _, api := range []string{"CDS", "EDS", "LDS", "RDS", "SDS"} {
			list[i].Subscriptions = append(list[i].Subscriptions, clients.Subscription{Sync: clients.Synced, API: api, Names: names, Version: "v2", Acknowledged: "v1", Sent: "v2"})
		}
	}
	got, err := csds.Ask(t.Context(), listen(t, list), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Clients) != len(list) || !cmp.Equal(got.Clients[9_999], list[9_999]) {
		t.Error(len(got.Clients), got.Clients[len(got.Clients)-1])
	}
}

// TestConfigs checks the CSDS fields that other programs read, in the answers of both methods.
func TestConfigs(t *testing.T) {
	conn, err := grpc.NewClient(listen(t, some()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).StreamClientStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := stream.Send(&statusv3.ClientStatusRequest{}); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, c := range answer.GetConfig() {
			for _, x := range c.GetGenericXdsConfigs() {
				text = append(text, fmt.Sprintf("%s %s %q %s %s %s %q %s", c.GetNode().GetId(), x.GetTypeUrl(), x.GetName(), x.GetVersionInfo(), x.GetConfigStatus(), x.GetClientStatus(), x.GetErrorState().GetDetails(), x.GetErrorState().GetVersionInfo()))
			}
		}
		want := []string{
			`edge-1 type.googleapis.com/envoy.config.listener.v3.Listener "" v1 ERROR NACKED "no" v2`,
			`edge-1 type.googleapis.com/envoy.config.listener.v3.Listener "in" v1 ERROR NACKED "a.yaml:3:1: error: rejected LDS \"in\": no [refused-by-client]" v2`,
			`edge-1 type.googleapis.com/envoy.service.runtime.v3.Runtime ""  NOT_SENT DOES_NOT_EXIST "" `,
		}
		if diff := cmp.Diff(want, text); diff != "" {
			t.Error(diff)
		}
	}
}

// TestMatchers checks requests that select nodes.
func TestMatchers(t *testing.T) {
	conn, err := grpc.NewClient(listen(t, some()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exact := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "edge-1"}}
	for _, c := range []struct {
		matchers []*matcherv3.StringMatcher
		want     string
	}{
		{nil, "xdspub serve edge-1 web"},
		{[]*matcherv3.StringMatcher{exact}, "edge-1"},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "EDGE"}}}, ""},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "EDGE"}, IgnoreCase: true}}, "edge-1"},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: "b"}}}, "web"},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: "e"}}}, "edge-1 web"},
		{[]*matcherv3.StringMatcher{exact, {MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: "b"}}}, "edge-1 web"},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "edge"}}}}, ""},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "edge-[0-9]"}}}}, "edge-1"},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "("}}}}, "InvalidArgument"},
		{[]*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Custom{}}}, "InvalidArgument"},
	} {
		q := &statusv3.ClientStatusRequest{}
		for _, m := range c.matchers {
			q.NodeMatchers = append(q.NodeMatchers, &matcherv3.NodeMatcher{NodeId: m})
		}
		answer, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(t.Context(), q)
		var is []string
		for _, config := range answer.GetConfig() {
			is = append(is, config.GetNode().GetId())
		}
		if text := strings.Join(is, " "); text != c.want && (err == nil || !strings.Contains(err.Error(), c.want) || c.want == "") {
			t.Errorf("%v: %s %v, want %s", c.matchers, text, err, c.want)
		}
	}
	q := &statusv3.ClientStatusRequest{NodeMatchers: []*matcherv3.NodeMatcher{{NodeMetadatas: []*matcherv3.StructMatcher{{}}}}}
	if _, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(t.Context(), q); err == nil {
		t.Error("metadata is matched")
	}
}

// TestAnswers checks the limit of simultaneous requests, and that a waiting request ends with its client.
func TestAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan struct{}, 10), make(chan struct{})
	g := grpc.NewServer()
	csds.Register(g, func(context.Context) (csds.Answer, error) {
		begun <- struct{}{}
		<-end
		return csds.Answer{}, nil
	})
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := make(chan error, 4)
	ask := func(ctx context.Context) error {
		_, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(ctx, &statusv3.ClientStatusRequest{})
		return err
	}
	for range 4 {
		go func() { answers <- ask(t.Context()) }()
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := ask(ctx); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	if len(begun) > 0 {
		t.Error("a fifth request is answered beside them")
	}
	close(end)
	for range 4 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := ask(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server says what its clients run.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	g := grpc.NewServer()
	csds.Register(g, func(context.Context) (csds.Answer, error) {
		return csds.Answer{
			Server:  csds.Server{Watch: control.Watch{Snapshot: "v1"}},
			Clients: []clients.Client{{Node: "edge", Kind: "ads", Subscriptions: []clients.Subscription{{API: "CDS", Sync: clients.Synced}}}},
		}, nil
	})
	go func() { _ = g.Serve(listener) }()
	defer g.Stop()
	answer, err := csds.Ask(context.Background(), listener.Addr().String(), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Server.Watch.Snapshot, answer.Clients[0].Node, answer.Clients[0].InSync())
	// Output:
	// v1 edge true
}
