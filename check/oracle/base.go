package oracle

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	internalv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// base holds the parts of a bootstrap that do not come from items: the parts of the Envoy's own bootstrap that
// resources refer to, and an absent management server. The other parts of the Envoy's own bootstrap are left out,
// because the Envoy of the oracle must not write files, for example.
type base struct {
	head  []byte // a JSON object without its last brace
	lists [parts][][]byte
}

const nobodysCluster = own + "management-server"

// nobody returns the config source of an absent management server. It uses the incremental protocol, because VHDS
// needs it.
func nobody() *corev3.ApiConfigSource {
	return &corev3.ApiConfigSource{
		ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: nobodysCluster},
		}}},
	}
}

func baseOf(c Candidate) base {
	b := &bootstrapv3.Bootstrap{
		Node: c.Bootstrap.GetNode(), DefaultRegexEngine: c.Bootstrap.GetDefaultRegexEngine(), InlineHeaders: c.Bootstrap.GetInlineHeaders(),
		DynamicResources:    &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: nobody()},
		BootstrapExtensions: []*corev3.TypedExtensionConfig{{Name: "envoy.bootstrap.internal_listener", TypedConfig: packed(&internalv3.InternalListener{})}},
	}
	if b.Node == nil {
		b.Node = &corev3.Node{Id: "xdspub", Cluster: "xdspub"}
	}
	var found base
	data, err := protojson.Marshal(b)
	if err != nil { // xdspub does not know the type of the regex engine
		b.DefaultRegexEngine = nil
		data, _ = protojson.Marshal(b)
	}
	found.head = data[:len(data)-1]
	add := func(p part, t *xds.Type, name string, m proto.Message) {
		data, err := protojson.Marshal(m)
		if err == nil && (t == nil || c.Snapshot.Lookup(t, name) == nil) {
			found.lists[p] = append(found.lists[p], data)
		}
	}
	for _, l := range c.Bootstrap.GetLayeredRuntime().GetLayers() {
		if l.GetStaticLayer() != nil {
			add(layers, xds.Runtime, l.GetName(), l)
		}
	}
	for _, s := range c.Bootstrap.GetStaticResources().GetSecrets() {
		add(secrets, xds.Secret, s.GetName(), s)
	}
	for _, s := range c.Bootstrap.GetStaticResources().GetClusters() { // resources refer to static clusters by their names only
		add(clusters, xds.Cluster, s.GetName(), emptyCluster(s.GetName()))
	}
	add(clusters, nil, "", emptyCluster(nobodysCluster))
	return found
}

// packed returns m in an Any. m must be a message that can always be encoded.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	_ = anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true, AllowPartial: true})
	return a
}
