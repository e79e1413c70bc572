// Package csds implements Envoy's client status discovery service (CSDS) over gRPC. The service answers with
// the state of each client of a server and of the server's source tree. Ask is the client.
//
//	csds.Register(grpcServer, source)
//	answer, err := csds.Ask(ctx, "unix:/run/xds.sock", nil)
//
// Answers contain no resources. The Source decides who may ask.
package csds

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"xdspub/diag"
	"xdspub/internal/expiry"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// metadataKey is the key in a node's metadata that holds the whole Client as JSON text. CSDS lacks fields for
// some of it, and Structs for 10,000 clients would take most of a minute.
const metadataKey = "xdspub"

type server struct {
	statusv3.UnimplementedClientStatusDiscoveryServiceServer
	ask Source
	// slots limits the number of requests answered at the same time.
	slots chan struct{}
}

// Source returns the answer, or an error if the client of the context may not have the answer.
type Source func(context.Context) (Answer, error)

// Answer describes a server and its clients.
type Answer struct {
	Server  Server           `json:"server"`
	Clients []clients.Client `json:"clients"`
}

// Server describes a server.
type Server struct {
	// Watch is the state of the source tree. In an answer, each list of findings has at most 256 KiB of JSON.
	Watch control.Watch `json:"watch"`
	// Certificate is the validity of the server's certificate, ClientCA the validity of the longest-lived
	// certificate of --client-ca; zero without such a certificate.
	Certificate expiry.Validity `json:"certificate,omitzero"`
	ClientCA    expiry.Validity `json:"client_ca,omitzero"`
	// Aggregates are the states of the Aggregates of a server with --aggregate-by, but for the own Aggregate, whose
	// state is Watch.
	Aggregates []Aggregate `json:"aggregates,omitempty"`
}

// Aggregate is the state of the clients whose nodes have equal values of some fields.
type Aggregate struct {
	// Name is the name of the Aggregate in the log and in metrics. Node has the fields and their values.
	Name string `json:"name"`
	Node string `json:"node"`
	// State is the directory of the Aggregate, with its history and the decisions of operators; empty without --state.
	State string `json:"state,omitempty"`
	// Clients is the number of connected clients.
	Clients int `json:"clients"`
	// Snapshot is the id of the published snapshot; empty for none. Faults are the faults of the watch of the
	// Aggregate, as text for people.
	Snapshot string   `json:"snapshot,omitempty"`
	Faults   []string `json:"faults,omitempty"`
}

// Faults returns the faults of the source tree and of the server at a time, as text for people.
func (s *Server) Faults(now time.Time) []string {
	faults := append(s.Watch.Faults(now), s.CertificateFaults(now)...)
	for _, a := range s.Aggregates {
		for _, fault := range a.Faults {
			faults = append(faults, a.Name+": "+fault)
		}
	}
	return faults
}

// CertificateFaults returns the faults of the server's certificates at a time, as text for people.
func (s *Server) CertificateFaults(now time.Time) (faults []string) {
	for _, of := range []struct {
		name string
		expiry.Validity
	}{{"the certificate of the server", s.Certificate}, {"the CA of clients", s.ClientCA}} {
		switch of.At(now) {
		case expiry.Expired:
			faults = append(faults, of.name+" has expired")
		case expiry.NotYetValid:
			faults = append(faults, of.name+" is not valid yet")
		}
	}
	return faults
}

// serverKey is the metadata key that holds the Server as JSON text.
const serverKey = "xdspub-server"

// mostText is the largest size in bytes of the JSON of a list of findings in an answer.
const mostText = 256 << 10

// mostAnswers is the number of requests answered at the same time; other requests wait. An answer about
// 10,000 clients has tens of MB.
const mostAnswers = 4

// Register registers the service. ask decides who gets an answer.
func Register(g *grpc.Server, ask Source) {
	statusv3.RegisterClientStatusDiscoveryServiceServer(g, &server{ask: ask, slots: make(chan struct{}, mostAnswers)})
}

// FetchClientStatus answers one request.
func (s *server) FetchClientStatus(ctx context.Context, q *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	says, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	matches, err := matcherOf(q.GetNodeMatchers())
	if err != nil {
		return nil, err
	}
	answer := &statusv3.ClientStatusResponse{}
	if len(q.GetNodeMatchers()) == 0 { // the server has no node to match
		config, err := configOfServer(says.Server)
		if err != nil {
			return nil, err
		}
		answer.Config = append(answer.Config, config)
	}
	for _, c := range says.Clients {
		if !matches(c.Node) {
			continue
		}
		config, err := configOf(c)
		if err != nil {
			return nil, err
		}
		answer.Config = append(answer.Config, config)
	}
	return answer, nil
}

// StreamClientStatus answers each request of a stream.
func (s *server) StreamClientStatus(stream grpc.BidiStreamingServer[statusv3.ClientStatusRequest, statusv3.ClientStatusResponse]) error {
	for {
		q, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := s.FetchClientStatus(stream.Context(), q)
		if err != nil {
			return err
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// matcherOf returns a function that reports whether any of the matchers matches a node id. An empty list
// matches every id. The error is a gRPC status.
func matcherOf(list []*matcherv3.NodeMatcher) (func(id string) bool, error) {
	var any []func(string) bool
	for _, m := range list {
		if len(m.GetNodeMetadatas()) > 0 {
			return nil, status.Error(codes.InvalidArgument, "node_metadatas: the metadata of nodes is not kept; match by node_id")
		}
		of, err := stringMatcher(m.GetNodeId())
		if err != nil {
			return nil, err
		}
		any = append(any, of)
	}
	return func(id string) bool {
		for _, of := range any {
			if of(id) {
				return true
			}
		}
		return len(any) == 0
	}, nil
}

// stringMatcher returns a function that reports whether a matcher matches a text; a nil matcher matches all.
// The error is a gRPC status.
func stringMatcher(m *matcherv3.StringMatcher) (func(string) bool, error) {
	plain := func(s string) string { return s }
	if m.GetIgnoreCase() {
		plain = strings.ToLower
	}
	switch p := m.GetMatchPattern().(type) {
	case nil:
		return func(string) bool { return true }, nil
	case *matcherv3.StringMatcher_Exact:
		return func(id string) bool { return plain(id) == plain(p.Exact) }, nil
	case *matcherv3.StringMatcher_Prefix:
		return func(id string) bool { return strings.HasPrefix(plain(id), plain(p.Prefix)) }, nil
	case *matcherv3.StringMatcher_Suffix:
		return func(id string) bool { return strings.HasSuffix(plain(id), plain(p.Suffix)) }, nil
	case *matcherv3.StringMatcher_Contains:
		return func(id string) bool { return strings.Contains(plain(id), plain(p.Contains)) }, nil
	case *matcherv3.StringMatcher_SafeRegex:
		expression, err := regexp.Compile(`\A(?:` + p.SafeRegex.GetRegex() + `)\z`)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "node_id: %v", err)
		}
		return expression.MatchString, nil
	}
	return nil, status.Errorf(codes.InvalidArgument, "node_id: matchers of this kind are not supported; use exact, prefix, suffix, contains or safe_regex")
}

// configOfServer returns the entry for the server itself, which has no subscriptions.
func configOfServer(s Server) (*statusv3.ClientConfig, error) {
	if r := s.Watch.Refused; r != nil {
		bounded := *r
		bounded.Findings, bounded.Message = firstOf(r.Findings), diag.Clip(r.Message, diag.MaxText)
		s.Watch.Refused = &bounded
	}
	s.Watch.Certificates = control.Certificates{OutOfDate: firstOf(s.Watch.Certificates.OutOfDate), ExpireSoon: firstOf(s.Watch.Certificates.ExpireSoon)}
	s.Watch.Failed = diag.Clip(s.Watch.Failed, diag.MaxText)
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &statusv3.ClientConfig{Node: &corev3.Node{
		Id: "xdspub serve", UserAgentName: "xdspub",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{serverKey: structpb.NewStringValue(string(text))}},
	}}, nil
}

// firstOf returns the first findings, up to mostText bytes of JSON.
func firstOf(list diag.List) (first diag.List) {
	size := 0
	for _, d := range list {
		text, err := json.Marshal(d)
		if size += len(text); err != nil || size > mostText {
			break
		}
		first = append(first, d)
	}
	return first
}

// configOf returns the entry for a client.
func configOf(c clients.Client) (*statusv3.ClientConfig, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	config := &statusv3.ClientConfig{Node: &corev3.Node{
		Id: c.Node, Cluster: c.Cluster, UserAgentName: c.UserAgent,
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{metadataKey: structpb.NewStringValue(string(text))}},
	}}
	for _, s := range c.Subscriptions {
		config.GenericXdsConfigs = append(config.GenericXdsConfigs, configsOf(s)...)
	}
	return config, nil
}

// configsOf returns an entry without a name for a subscription, and an entry for each rejected resource.
func configsOf(s clients.Subscription) []*statusv3.ClientConfig_GenericXdsConfig {
	entry := func(name string) *statusv3.ClientConfig_GenericXdsConfig {
		return &statusv3.ClientConfig_GenericXdsConfig{
			TypeUrl: urlOf(s.API), Name: name, VersionInfo: s.Acknowledged, LastUpdated: timestamppb.New(s.Since),
			ConfigStatus: configStatus[s.Sync], ClientStatus: clientStatus[s.Sync],
		}
	}
	list := []*statusv3.ClientConfig_GenericXdsConfig{entry("")}
	if s.Refusal == nil {
		return list
	}
	failure := func(details string) *adminv3.UpdateFailureState {
		return &adminv3.UpdateFailureState{LastUpdateAttempt: timestamppb.New(s.Refusal.Time), Details: details, VersionInfo: s.Refusal.Version}
	}
	list[0].ErrorState = failure(s.Refusal.Message)
	for _, d := range s.Refusal.Findings {
		if d.Resource.Name != "" {
			of := entry(d.Resource.Name)
			of.ErrorState = failure(d.String())
			list = append(list, of)
		}
	}
	return list
}

// configStatus and clientStatus translate a clients.Sync to CSDS.
var (
	configStatus = map[clients.Sync]statusv3.ConfigStatus{
		clients.Synced: statusv3.ConfigStatus_SYNCED, clients.NotSent: statusv3.ConfigStatus_NOT_SENT,
		clients.NoVariant: statusv3.ConfigStatus_ERROR, clients.Stale: statusv3.ConfigStatus_STALE,
		clients.Rejected: statusv3.ConfigStatus_ERROR, clients.Retrying: statusv3.ConfigStatus_ERROR,
	}
	clientStatus = map[clients.Sync]adminv3.ClientResourceStatus{
		clients.Synced: adminv3.ClientResourceStatus_ACKED, clients.NotSent: adminv3.ClientResourceStatus_DOES_NOT_EXIST,
		clients.NoVariant: adminv3.ClientResourceStatus_DOES_NOT_EXIST, clients.Stale: adminv3.ClientResourceStatus_REQUESTED,
		clients.Rejected: adminv3.ClientResourceStatus_NACKED, clients.Retrying: adminv3.ClientResourceStatus_NACKED,
	}
)

// urlOf returns the type URL of an API, such as CDS; "" for an unknown one.
func urlOf(api string) string {
	for _, t := range xds.Types {
		if t.API == api {
			return t.URL()
		}
	}
	return ""
}

// clientOf returns the Client in an entry.
func clientOf(config *statusv3.ClientConfig) (c clients.Client, err error) {
	text := config.GetNode().GetMetadata().GetFields()[metadataKey].GetStringValue()
	if text == "" {
		return c, errors.New("the answer does not describe the clients: the server is not xdspub serve, or an older version")
	}
	return c, json.Unmarshal([]byte(text), &c)
}
