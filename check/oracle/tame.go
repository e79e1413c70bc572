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

// asksOutside are packages of extensions that ask somebody as soon as they are at work.
var asksOutside = map[string]string{
	".aws_lambda.":          "Envoy would ask for credentials",
	".aws_request_signing.": "Envoy would ask for credentials",
}

// surroundings returns a bootstrap, in JSON, with what the resources refer to and a throw-away Envoy
// does not get by files.
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

// tamed returns the resources of a Candidate in a form that a throw-away Envoy may load: without ports,
// questions to others, and writes. tamed lists the resources that have no such form as omitted.
func (f *folded) tamed() (s *xds.Snapshot, omitted []omission) {
	t := &taming{folded: f, out: make(map[xds.Key]bool)}
	var all []*xds.Resource
	for _, r := range f.candidate.Snapshot.All() {
		if why := t.why(r); why != "" {
			omitted = append(omitted, omission{r, why})
			t.out[r.Key] = true
		} else if r.Type == xds.Cluster && r.DeliveredBy == xds.StaticResources {
			t.out[r.Key] = true // static in the surroundings as well
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

// taming is the way to resources that a throw-away Envoy may load.
type taming struct {
	folded *folded
	out    map[xds.Key]bool // of the Candidate, which the Envoy does not load
	hosts  uint32           // that stand in for others
}

// why returns why a resource can't be loaded here.
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

// tame takes what leads outside of a message out of it.
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
		m.InitialFetchTimeout = durationpb.New(time.Millisecond) // Envoy does not wait for an absent server
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

// redirect points a subscription at the files made from the Snapshot. If these files lack the resource and the
// Snapshot has it, redirect points the subscription at the absent management server. Subscriptions to other
// sources stay.
func (t *taming) redirect(sub xds.Subscription) (changed bool) {
	s := t.folded.candidate.Snapshot
	is := s.Answer(sub)
	switch {
	case is != nil && t.out[is.Key]:
		sub.Set(nobodys())
	case is != nil || s.Serves(sub):
		sub.Set(&corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}})
	default:
		return false
	}
	return true
}

// nobodys returns the config source of the absent management server.
func nobodys() *corev3.ConfigSource {
	return &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: nobody()}}
}

func isNobodys(c *corev3.ConfigSource) bool {
	return slices.ContainsFunc(c.GetApiConfigSource().GetGrpcServices(), func(s *corev3.GrpcService) bool {
		return s.GetEnvoyGrpc().GetClusterName() == nobodysCluster
	})
}

// nowhere returns a fresh address of this machine at which nobody can listen.
func (t *taming) nowhere() *corev3.Address {
	t.hosts++
	ip := netip.AddrFrom4([4]byte{127, byte(t.hosts >> 16), byte(t.hosts >> 8), byte(t.hosts)})
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip.String(), PortSpecifier: &corev3.SocketAddress_PortValue{},
	}}}
}
