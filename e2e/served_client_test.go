package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// follower is a client that follows the protocol. It connects again when its streams end. The test can make it read
// late, disconnect, and refuse responses.
type follower struct {
	transport
	delta  bool
	socket string

	mu      sync.Mutex
	rand    *rand.Rand
	types   map[*xds.Type]*followed
	cut     context.CancelFunc // ends the streams; nil if there are none
	frozen  chan struct{}      // closed while the follower reads
	refuses bool               // the follower refuses each fourth response, on average
	twice   []string           // clusters and listeners that a server has sent although the follower had them
}

// followed is the subscription of a follower to a type, and the resources that it has.
type followed struct {
	names    []string // empty means all
	has      map[string]*anypb.Any
	versions map[string]string // by name, in the incremental variants
	version  string            // in the variants by state of the world
}

// services has the method of the singleton service of each type. * stands for Stream or Delta.
var services = map[*xds.Type]string{
	xds.Cluster: "cluster.v3.ClusterDiscoveryService/*Clusters", xds.Endpoints: "endpoint.v3.EndpointDiscoveryService/*Endpoints",
	xds.Listener: "listener.v3.ListenerDiscoveryService/*Listeners", xds.RouteConfiguration: "route.v3.RouteDiscoveryService/*Routes",
	xds.ScopedRoutes: "route.v3.ScopedRoutesDiscoveryService/*ScopedRoutes", xds.Secret: "secret.v3.SecretDiscoveryService/*Secrets",
	xds.Runtime: "runtime.v3.RuntimeDiscoveryService/*Runtime", xds.ExtensionConfig: "extension.v3.ExtensionConfigDiscoveryService/*ExtensionConfigs",
}

// startFollower starts a follower that asks for the resources of names, and for all clusters, listeners and scopes.
// The follower ends with the test.
func startFollower(t *testing.T, random *rand.Rand, k transport, socket string, names map[*xds.Type][]string) *follower {
	f := &follower{transport: k, delta: strings.HasPrefix(k.api, "DELTA"), socket: socket, rand: random, types: make(map[*xds.Type]*followed), frozen: make(chan struct{})}
	close(f.frozen)
	for of := range services {
		f.types[of] = &followed{names: names[of], has: make(map[string]*anypb.Any), versions: make(map[string]string)}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			f.session(ctx)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}

// session connects, and follows until the streams end.
func (f *follower) session(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	socket := f.socket
	f.mu.Unlock()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close()
	f.mu.Lock()
	f.cut = cancel
	f.mu.Unlock()
	all := slices.Collect(maps.Keys(services))
	if f.aggregated {
		f.stream(ctx, conn, "discovery.v3.AggregatedDiscoveryService/*AggregatedResources", all)
	} else {
		var streams sync.WaitGroup
		for _, of := range all {
			streams.Go(func() { f.stream(ctx, conn, services[of], []*xds.Type{of}); cancel() })
		}
		streams.Wait()
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Millisecond): // the server may be down
	}
}

// stream asks for types by a stream, and handles the responses until the stream ends.
func (f *follower) stream(ctx context.Context, conn *grpc.ClientConn, method string, types []*xds.Type) {
	way := "Stream"
	if f.delta {
		way = "Delta"
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/envoy.service."+strings.Replace(method, "*", way, 1), grpc.WaitForReady(true))
	if err != nil {
		return
	}
	for _, of := range types {
		if s.SendMsg(f.ask(of)) != nil {
			return
		}
	}
	for {
		var answer any
		if f.delta {
			r := new(discoveryv3.DeltaDiscoveryResponse)
			if err := s.RecvMsg(r); err != nil {
				return
			}
			answer = f.takeDelta(r)
		} else {
			r := new(discoveryv3.DiscoveryResponse)
			if err := s.RecvMsg(r); err != nil {
				return
			}
			answer = f.take(r)
		}
		f.mu.Lock()
		frozen := f.frozen
		f.mu.Unlock()
		select {
		case <-frozen:
		case <-ctx.Done():
			return
		}
		if s.SendMsg(answer) != nil {
			return
		}
	}
}

// ask returns the first request of a stream for a type.
func (f *follower) ask(of *xds.Type) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, node := f.types[of], &corev3.Node{Id: "follower-" + f.name}
	if f.delta {
		return &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: of.URL(), ResourceNamesSubscribe: m.names, InitialResourceVersions: maps.Clone(m.versions)}
	}
	return &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: of.URL(), ResourceNames: m.names, VersionInfo: m.version}
}

// refusal returns the error with which the follower refuses the next response, or nil. The caller holds f.mu.
func (f *follower) refusal() *rpcstatus.Status {
	if f.refuses && f.rand.IntN(4) == 0 {
		return &rpcstatus.Status{Code: 3, Message: "refused by the test"}
	}
	return nil
}

func (f *follower) take(r *discoveryv3.DiscoveryResponse) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := typeOf(r.GetTypeUrl())
	m := f.types[of]
	refused := f.refusal()
	if refused == nil {
		m.version = r.GetVersionInfo()
		if len(m.names) == 0 {
			clear(m.has) // the response has all resources
		}
		for _, body := range r.GetResources() {
			m.has[nameIn(of, body)] = body
		}
	}
	return &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResourceNames: m.names, VersionInfo: m.version, ResponseNonce: r.GetNonce(), ErrorDetail: refused}
}

func (f *follower) takeDelta(r *discoveryv3.DeltaDiscoveryResponse) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.types[typeOf(r.GetTypeUrl())]
	refused := f.refusal()
	if refused == nil {
		for _, one := range r.GetResources() {
			if len(m.names) == 0 && r.GetTypeUrl() != xds.ScopedRoutes.URL() && m.versions[one.GetName()] == one.GetVersion() {
				f.twice = append(f.twice, one.GetName()+" "+one.GetVersion())
			}
			m.has[one.GetName()], m.versions[one.GetName()] = one.GetResource(), one.GetVersion()
		}
		for _, name := range r.GetRemovedResources() {
			delete(m.has, name)
			delete(m.versions, name)
		}
	}
	return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: refused}
}

func typeOf(url string) *xds.Type {
	for of := range services {
		if of.URL() == url {
			return of
		}
	}
	return nil
}

// nameIn returns the name in the message of a resource.
func nameIn(of *xds.Type, body *anypb.Any) string {
	m, err := body.UnmarshalNew()
	if err != nil {
		return err.Error()
	}
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(of.Name)).String()
}

// contentOf returns a resource as text, without its config sources.
func contentOf(t *testing.T, body *anypb.Any) string {
	t.Helper()
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	replaceSources(outlined(v), "any")
	if source := map[string]any{"eds_config": "any"}; reflect.DeepEqual(v["eds_cluster_config"], source) {
		delete(v, "eds_cluster_config") // equals an absent eds_cluster_config
	}
	if text, err = json.MarshalIndent(v, "", " "); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// differs compares the resources of a follower with there, and returns the differences in words.
func (f *follower) differs(t *testing.T, there map[*xds.Type]map[string]string) (list []string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for of, m := range f.types {
		for name, text := range there[of] {
			switch body := m.has[name]; {
			case len(m.names) > 0 && !slices.Contains(m.names, name):
			case body == nil:
				list = append(list, of.API+" "+name+" lacks")
			case contentOf(t, body) != text:
				list = append(list, of.API+" "+name+" is old: "+cmp.Diff(text, contentOf(t, body)))
			}
		}
		for name := range m.has {
			// By state of the world, clients keep what they ask for by name.
			if _, is := there[of][name]; !is && (f.delta || len(m.names) == 0) {
				list = append(list, of.API+" "+name+" is left over")
			}
		}
	}
	slices.Sort(list)
	return list
}

// freeze makes a follower stop reading, or continue.
func (f *follower) freeze(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.frozen:
		if frozen {
			f.frozen = make(chan struct{})
		}
	default:
		if !frozen {
			close(f.frozen)
		}
	}
}

// disconnect ends the streams of a follower, which then connects again.
func (f *follower) disconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut != nil {
		f.cut()
	}
}

// move makes a follower connect to another server.
func (f *follower) move(socket string) {
	f.mu.Lock()
	f.socket = socket
	f.mu.Unlock()
	f.disconnect()
}

// refuse makes a follower refuse some responses, or accept all.
func (f *follower) refuse(some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = some
}
