package oracle

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	forwardv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/xds"
)

// asksOutside maps packages of extensions that connect to other machines as soon as they run to a text about it.
var asksOutside = map[string]string{
	".aws_lambda.":          "Envoy would ask for credentials",
	".aws_request_signing.": "Envoy would ask for credentials",
}

// surroundings returns a bootstrap, as JSON, with the static resources that other resources may refer to: the
// secrets, and an empty cluster for each static cluster.
func (f *folded) surroundings() []byte {
	var items []*item
	for _, i := range f.items {
		if i.part == secrets && i.of.DeliveredBy == xds.StaticResources {
			items = append(items, i)
		}
	}
	for _, r := range f.candidate.Snapshot.Of(xds.Cluster) {
		if r.DeliveredBy == xds.StaticResources {
			items = append(items, f.standIn(r))
		}
	}
	return f.bootstrap(items)
}

// tamed returns the resources of a Candidate in a form that a throw-away Envoy may load: it opens no port, asks
// nobody and writes no file. omitted are the resources without such a form.
func (f *folded) tamed() (s *xds.Snapshot, omitted []omission) {
	t := &taming{folded: f, out: make(map[xds.Key]bool)}
	var all []*xds.Resource
	for _, r := range f.candidate.Snapshot.All() {
		if why := t.why(r); why != "" {
			omitted = append(omitted, omission{r, why})
			t.out[r.Key] = true
		} else if r.Type == xds.Cluster && r.DeliveredBy == xds.StaticResources {
			t.out[r.Key] = true // surroundings has a stand-in for a static cluster
		}
	}
	for _, r := range f.candidate.Snapshot.All() {
		switch {
		case !t.out[r.Key]:
			with := r.With(proto.CloneOf(r.Message()))
			with.DeliveredBy = ""
			with.Edit(t.tame)
			all = append(all, with)
		case r.Type == xds.Cluster && r.DeliveredBy != xds.StaticResources:
			all = append(all, r.With(emptyCluster(r.Name)))
		}
	}
	return xds.NewSnapshot(all), omitted
}

// taming is the state of tamed.
type taming struct {
	folded *folded
	out    map[xds.Key]bool // the resources of the Candidate that the Envoy does not load
	hosts  uint32           // the number of addresses that nowhere has returned
}

// why returns the reason why a throw-away Envoy must not load a resource, or "".
func (t *taming) why(r *xds.Resource) (why string) {
	if l, ok := r.Message().(*listenerv3.Listener); ok && l.GetApiListener() != nil {
		return "they are for gRPC clients"
	}
	xds.Walk(r.Message(), func(n *xds.Node) {
		if why == "" {
			why = t.folded.outside(n)
		}
		for part, does := range asksOutside {
			if why == "" && strings.Contains(string(n.Name()), part) {
				why = does
			}
		}
		if why == "" {
			if _, err := protojson.Marshal(n.Message); err != nil && n.Parent == nil {
				why = "they can't be written as JSON"
			}
		}
	})
	return why
}

// tame changes a message so that Envoy opens no port, asks nobody and writes no file.
func (t *taming) tame(n *xds.Node) (changed bool) {
	changed = still(n)
	if sub, ok := n.Subscription(); ok {
		changed = t.redirect(sub) || changed
	}
	switch m := n.Message.(type) {
	case *corev3.ConfigSource:
		if !xds.FromSnapshot(m) && !isNobodys(m) && (t.folded.candidate.Bootstrap == nil || m.GetApiConfigSource() == nil) {
			proto.Reset(m)
			proto.Merge(m, nobodys())
		}
		m.InitialFetchTimeout = durationpb.New(time.Millisecond) // Envoy need not wait for an absent server
	case *listenerv3.Listener:
		if m.GetInternalListener() == nil {
			m.BindToPort = wrapperspb.Bool(false)
		}
	case *clusterv3.Cluster:
		m.HealthChecks = nil
	case *endpointv3.Endpoint:
		if m.GetAddress().GetEnvoyInternalAddress() == nil {
			m.Address = t.nowhere()
		}
		m.AdditionalAddresses, m.HealthCheckConfig = nil, nil
	case *corev3.GrpcService_GoogleGrpc:
		m.TargetUri = "unix:/dev/null"
	case *forwardv3.DnsCacheConfig:
		m.PreresolveHostnames = nil
	default:
		return changed
	}
	return true
}

// redirect changes the config source of a subscription. If the Snapshot has the resource and the throw-away Envoy
// does not load it, the subscription asks the absent management server. Otherwise, a subscription to this Snapshot
// reads the files made from it. Other subscriptions stay.
func (t *taming) redirect(sub xds.Subscription) (changed bool) {
	s := t.folded.candidate.Snapshot
	is := s.Answer(sub)
	switch {
	case is != nil && t.out[is.Key]:
		sub.Set(nobodys())
	case is != nil || s.Serves(sub):
		sub.Set(&corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		})
	default:
		return false
	}
	return true
}

// nobodys returns the config source of the absent management server.
func nobodys() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: nobody()},
	}
}

func isNobodys(c *corev3.ConfigSource) bool {
	return slices.ContainsFunc(c.GetApiConfigSource().GetGrpcServices(), func(s *corev3.GrpcService) bool {
		return s.GetEnvoyGrpc().GetClusterName() == nobodysCluster
	})
}

// nowhere returns a new address of this machine on which nobody can listen.
func (t *taming) nowhere() *corev3.Address {
	t.hosts++
	ip := netip.AddrFrom4([4]byte{127, byte(t.hosts >> 16), byte(t.hosts >> 8), byte(t.hosts)})
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip.String(), PortSpecifier: &corev3.SocketAddress_PortValue{},
	}}}
}
