package oracle

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// part is a list in a bootstrap. The lists are in the order of references: the resources of a list refer only to
// those of the same list and of earlier lists.
type part int

const (
	secrets part = iota
	layers
	clusters
	listeners
	parts
)

// item is an element of a list in the bootstrap.
type item struct {
	// of is the resource of the item; nil for a stand-in.
	of   *xds.Resource
	part part
	// name is the name of the item in the bootstrap. It is empty if the item has the name of the resource.
	name string
	json []byte
	// standIn replaces the item if Envoy refuses the item. With the stand-in, Envoy can judge the resources that
	// refer to the item. It is nil if no resource can refer to the item.
	standIn *item
}

// omission is a resource that Envoy does not judge, or not completely. why is the reason.
type omission struct {
	of  *xds.Resource
	why string
}

// folded is a Candidate as items of one bootstrap. A resource that Envoy gets by a subscription gets its own
// cluster or listener, which contains it. All subscriptions ask an absent management server.
type folded struct {
	candidate Candidate
	items     []*item
	omitted   []omission
	files     []string          // the files that resources name
	filters   map[string]holder // the kind of filter of each extension config, by its name
	base      base
	version   *envoyapi.Version
}

// own is the prefix of names that the oracle adds.
const own = "xdspub-oracle/"

// fold returns the items of a Candidate, and the omitted resources.
func fold(c Candidate) *folded {
	f := &folded{candidate: c, filters: make(map[string]holder), base: baseOf(c), version: cmp.Or(c.Envoy, envoyapi.Latest)}
	var all []*xds.Resource
	for _, t := range []*xds.Type{
		xds.Secret, xds.Runtime, xds.Cluster, xds.Endpoints, xds.LocalityEndpoints, xds.Listener,
		xds.RouteConfiguration, xds.VirtualHost, xds.ScopedRoutes, xds.ExtensionConfig,
	} {
		all = append(all, c.Snapshot.Of(t)...) // listeners come before extension configs, because they tell the kind of filter
	}
	for _, r := range all {
		m, why := f.standalone(r)
		if why == "" {
			why = f.add(r, m)
		}
		if why != "" {
			f.omitted = append(f.omitted, omission{r, why})
		}
		if i := f.standIn(r); i != nil && why != "" {
			f.items = append(f.items, i)
		}
	}
	slices.SortStableFunc(f.items, func(a, b *item) int { return int(a.part - b.part) })
	return f
}

// add adds the item of a resource. It returns the reason if the resource has no item.
func (f *folded) add(r *xds.Resource, m proto.Message) (why string) {
	i := &item{of: r, standIn: f.standIn(r)}
	name := own + strconv.Itoa(len(f.items))
	switch m := m.(type) {
	case *tlsv3.Secret:
		if f.isStatic(r) {
			if why := f.append(&item{of: r, part: secrets}, m); why != "" {
				return why
			}
		}
		i.name = name
		switch m.GetType().(type) {
		case *tlsv3.Secret_TlsCertificate:
			i.part = listeners
			return f.append(i, certificateListener(name, m.GetTlsCertificate()))
		case *tlsv3.Secret_ValidationContext:
			i.part = clusters
			return f.append(i, validationCluster(name, m.GetValidationContext()))
		}
		return "" // --mode validate does not check secrets of other kinds
	case *runtimev3.Runtime:
		i.part = layers
		return f.append(i, &bootstrapv3.RuntimeLayer{Name: m.GetName(), LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: m.GetLayer()}})
	case *clusterv3.Cluster:
		i.part = clusters
		return f.append(i, m)
	case *endpointv3.ClusterLoadAssignment:
		i.part, i.name = clusters, name
		return f.append(i, clusterAround(name, m))
	case *endpointv3.LbEndpoint:
		i.part, i.name = clusters, name
		locality := &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{m}}
		return f.append(i, clusterAround(name, &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}))
	case *listenerv3.Listener:
		if m.GetApiListener() != nil {
			return "they are for gRPC clients"
		}
		i.part = listeners
		return f.append(i, m)
	case *routev3.RouteConfiguration:
		i.part, i.name = listeners, name
		return f.append(i, routesListener(name, m))
	case *routev3.VirtualHost:
		i.part, i.name = listeners, name
		return f.append(i, routesListener(name, &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{m}}))
	case *corev3.TypedExtensionConfig:
		i.part, i.name = listeners, name
		l := f.filters[r.Name].listener(name, m)
		if l == nil {
			return "they are judged where a listener uses them as an HTTP or listener filter"
		}
		return f.append(i, l)
	default:
		return "they can't be static"
	}
}

// clusterAround returns a static cluster with the endpoints of an assignment. It removes LEDS from the assignment,
// because Envoy refuses LEDS in a static cluster.
func clusterAround(name string, m *endpointv3.ClusterLoadAssignment) *clusterv3.Cluster {
	for _, locality := range m.GetEndpoints() {
		if locality.GetLedsClusterLocalityConfig() != nil {
			locality.LbConfig = nil
		}
	}
	cluster := emptyCluster(name)
	cluster.LoadAssignment = m
	return cluster
}

func (f *folded) append(i *item, m proto.Message) (why string) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return "they can't be written as JSON" // a payload is malformed, for example
	}
	i.json = data
	f.items = append(f.items, i)
	return ""
}

// standIn returns the item that replaces a resource which other resources may refer to by name: an empty cluster.
// It returns nil for a resource of another type.
func (f *folded) standIn(r *xds.Resource) *item {
	if r.Type != xds.Cluster || r.Name == "" {
		return nil
	}
	data, err := protojson.Marshal(emptyCluster(r.Name))
	if err != nil { // the name is not UTF-8
		return nil
	}
	return &item{part: clusters, json: data}
}

// isStatic reports whether a reference without a config source finds the secret.
func (f *folded) isStatic(r *xds.Resource) bool {
	return !f.candidate.Snapshot.FromBootstrap() || r.DeliveredBy == xds.StaticResources
}

// bootstrap returns a bootstrap with items, as JSON.
func (f *folded) bootstrap(items []*item) []byte {
	lists := f.base.lists
	for p := range lists {
		lists[p] = slices.Clip(lists[p])
	}
	for _, i := range items {
		lists[i.part] = append(lists[i.part], i.json)
	}
	var b bytes.Buffer
	b.Write(f.base.head)
	fmt.Fprintf(&b, `,"layered_runtime":{"layers":[%s]}`, bytes.Join(lists[layers], comma))
	fmt.Fprintf(&b, `,"static_resources":{"secrets":[%s],"clusters":[%s],"listeners":[%s]}}`, bytes.Join(lists[secrets], comma),
		bytes.Join(lists[clusters], comma), bytes.Join(lists[listeners], comma))
	return b.Bytes()
}

var comma = []byte(",\n")
