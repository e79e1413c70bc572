//go:build !light

package publish_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	cdsFile = "cds/cds.pb"
	ldsFile = "lds/lds.pb"
	// envoyPath is the path of the output directory for an Envoy.
	envoyPath = "/xds/"
	// drains is how long an Envoy lets a listener or filter chain drain.
	drains = 10 * time.Minute
)

// resource is a published resource with the names that it needs.
type resource struct {
	name  string
	bytes string
	// files are the files that the resource subscribes to. routes are the files among them that have routes.
	// clusters are the clusters that the resource itself routes to.
	files, routes, clusters []string
}

// parsed returns the resources of a published file. parsed finds the names by its own code, because the code of
// the program is under test.
func parsed(data string) []resource {
	var response discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal([]byte(data), &response); err != nil {
		panic(err) // a published file is always whole
	}
	var list []resource
	for _, r := range response.GetResources() {
		n := resource{bytes: string(r.GetValue())}
		switch m := open(r).(type) {
		case *clusterv3.Cluster:
			n.name = m.GetName()
			if m.GetType() == clusterv3.Cluster_EDS {
				n.asks(m.GetEdsClusterConfig().GetEdsConfig())
			}
			if m.GetTransportSocket() != nil {
				tls := open(m.GetTransportSocket().GetTypedConfig()).(*tlsv3.UpstreamTlsContext)
				n.asks(tls.GetCommonTlsContext().GetValidationContextSdsSecretConfig().GetSdsConfig())
			}
		case *listenerv3.Listener:
			n.name = m.GetName()
			for _, chain := range m.GetFilterChains() {
				n.chain(chain)
			}
		case *routev3.RouteConfiguration:
			n.name = m.GetName()
			n.leadsTo(m)
		case *routev3.ScopedRouteConfiguration:
			n.name = m.GetName()
			n.leadsTo(m.GetRouteConfiguration())
		}
		list = append(list, n)
	}
	return list
}

func open(a *anypb.Any) proto.Message {
	m, err := a.UnmarshalNew()
	if err != nil {
		panic(err)
	}
	return m
}

func (r *resource) asks(source *corev3.ConfigSource) (file string) {
	if file, ours := strings.CutPrefix(source.GetPathConfigSource().GetPath(), envoyPath); ours {
		r.files = append(r.files, file)
		return file
	}
	return ""
}

func (r *resource) chain(chain *listenerv3.FilterChain) {
	if chain.GetTransportSocket() != nil {
		tls := open(chain.GetTransportSocket().GetTypedConfig()).(*tlsv3.DownstreamTlsContext)
		for _, s := range tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
			r.asks(s.GetSdsConfig())
		}
	}
	hcm := open(chain.GetFilters()[0].GetTypedConfig()).(*hcmv3.HttpConnectionManager)
	for _, filter := range hcm.GetHttpFilters() {
		r.asks(filter.GetConfigDiscovery().GetConfigSource())
	}
	for _, source := range []*corev3.ConfigSource{hcm.GetRds().GetConfigSource(), hcm.GetScopedRoutes().GetScopedRds().GetScopedRdsConfigSource()} {
		if file := r.asks(source); file != "" {
			r.routes = append(r.routes, file)
		}
	}
	r.leadsTo(hcm.GetRouteConfig())
}

func (r *resource) leadsTo(routes *routev3.RouteConfiguration) {
	for _, host := range routes.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			r.clusters = append(r.clusters, route.GetRoute().GetCluster())
		}
	}
}

// held is the state of an Envoy that follows each rename at once, with the published files. Its methods return
// the fault of that state, or "".
type held struct {
	disk     map[string]string
	clusters map[string]resource
	live     map[string]resource // listeners
	draining []draining
	// routes are the resources of the route files of live and draining listeners, as Envoy read them last.
	routes map[string][]resource

	trimDelay time.Duration
	// want are the files of the running publish; nil during a rollback and a trim.
	want map[string]string
	// routed is when a listener last routed to a cluster, and named when one last named a file.
	routed, named map[string]time.Time
	// excused are the files that somebody has removed by hand, and their clusters.
	excused map[string]bool

	known map[string][]resource
}

type draining struct {
	resource
	until time.Time
}

func newHeld(trimDelay time.Duration, known map[string][]resource) *held {
	return &held{
		disk: map[string]string{}, clusters: map[string]resource{}, live: map[string]resource{}, routes: map[string][]resource{},
		routed: map[string]time.Time{}, named: map[string]time.Time{}, excused: map[string]bool{}, trimDelay: trimDelay, known: known,
	}
}

func (h *held) read(file string) []resource {
	data, there := h.disk[file]
	if !there {
		return nil
	}
	list, ok := h.known[data]
	if !ok {
		list = parsed(data)
		h.known[data] = list
	}
	return list
}

// passes moves the time to now, and removes listeners that have drained by then.
func (h *held) passes(now time.Time) {
	for _, c := range h.leads(maps.Values(h.live)) {
		h.routed[c] = now
	}
	for _, r := range h.live {
		for _, file := range r.files {
			h.named[file] = now
		}
	}
	h.draining = slices.DeleteFunc(h.draining, func(d draining) bool { return !d.until.After(now) })
	h.drop()
}

// lost records that somebody removed a file. The clusters that name the file may then be removed at any time.
func (h *held) lost(file string, now time.Time) {
	h.passes(now)
	delete(h.disk, file)
	h.excused[file] = true
	for _, r := range h.read(cdsFile) {
		if slices.Contains(r.files, file) {
			h.excused[r.name] = true
		}
	}
}

// names reports whether a published cluster or listener names a file.
func (h *held) names(file string) bool {
	return slices.ContainsFunc(slices.Concat(h.read(cdsFile), h.read(ldsFile)), func(r resource) bool { return slices.Contains(r.files, file) })
}

// drop removes the route files that no listener reads any more.
func (h *held) drop() {
	had := make(map[string]bool)
	for r := range h.readers() {
		for _, file := range r.routes {
			had[file] = true
		}
	}
	maps.DeleteFunc(h.routes, func(file string, _ []resource) bool { return !had[file] })
}

// readers returns the live and the draining listeners.
func (h *held) readers() func(yield func(resource) bool) {
	return func(yield func(resource) bool) {
		for _, r := range h.live {
			if !yield(r) {
				return
			}
		}
		for _, d := range h.draining {
			if !yield(d.resource) {
				return
			}
		}
	}
}

// leads returns the clusters that listeners route to.
func (h *held) leads(listeners func(yield func(resource) bool)) []string {
	var clusters []string
	for r := range listeners {
		clusters = append(clusters, r.clusters...)
		for _, file := range r.routes {
			for _, routes := range h.routes[file] {
				clusters = append(clusters, routes.clusters...)
			}
		}
	}
	return clusters
}

// written records a file that was renamed into place.
func (h *held) written(file, data string, now time.Time) string {
	h.passes(now)
	h.disk[file] = data
	delete(h.excused, file)
	wrong := ""
	switch {
	case file == cdsFile:
		wrong = h.takeClusters(now)
	case file == ldsFile:
		wrong = h.takeListeners(now)
	default:
		if _, read := h.routes[file]; read {
			h.routes[file] = h.read(file)
		}
	}
	if wrong == "" {
		wrong = h.wrong()
	}
	return wrong
}

func (h *held) removed(file string, now time.Time) string {
	h.passes(now)
	delete(h.disk, file)
	if wrong := h.wrong(); wrong != "" {
		return wrong
	}
	if last, ok := h.named[file]; ok && !h.excused[file] && now.Before(last.Add(h.trimDelay)) {
		return fmt.Sprintf("%s was named %v ago, and is gone", file, now.Sub(last))
	}
	return ""
}

func (h *held) takeClusters(now time.Time) string {
	before := h.clusters
	h.clusters = make(map[string]resource)
	for _, r := range h.read(cdsFile) {
		h.clusters[r.name] = r
	}
	for name := range before {
		if _, stays := h.clusters[name]; stays || h.excused[name] {
			continue
		}
		if last, ok := h.routed[name]; ok && now.Before(last.Add(h.trimDelay)) {
			return fmt.Sprintf("listeners routed to the cluster %s %v ago, and it is gone", name, now.Sub(last))
		}
	}
	return h.asked(before, h.clusters)
}

func (h *held) takeListeners(now time.Time) string {
	before := h.live
	h.live = make(map[string]resource)
	for _, r := range h.read(ldsFile) {
		h.live[r.name] = r
	}
	for name, was := range before {
		if is, stays := h.live[name]; !stays || is.bytes != was.bytes {
			h.draining = append(h.draining, draining{was, now.Add(drains)})
		}
	}
	for _, r := range h.live {
		for _, file := range r.routes {
			if _, read := h.routes[file]; !read {
				h.routes[file] = h.read(file)
			}
		}
	}
	h.drop()
	return h.asked(before, h.live)
}

// asked returns a fault if a resource subscribes to a file that nobody subscribed to before, and the file is
// not yet as the running publish brings it. Envoy would then run an outdated file.
func (h *held) asked(before, now map[string]resource) string {
	asked := make(map[string]bool)
	for _, r := range before {
		for _, file := range r.files {
			asked[file] = true
		}
	}
	for _, d := range h.draining { // draining listeners keep their subscriptions, and share them
		for _, file := range d.files {
			asked[file] = true
		}
	}
	for _, r := range now {
		for _, file := range r.files {
			if want, ok := h.want[file]; ok && !asked[file] && want != h.disk[file] {
				return fmt.Sprintf("%s asks for %s, which is not what the publish brings", r.name, file)
			}
		}
	}
	return ""
}

// wrong returns the fault of the current state, for the running Envoy and for an Envoy that starts now.
func (h *held) wrong() string {
	starts := make(map[string]bool)
	for _, of := range []string{cdsFile, ldsFile} {
		for _, r := range h.read(of) {
			for _, file := range r.files {
				if _, there := h.disk[file]; !there && !h.excused[file] {
					return fmt.Sprintf("%s in %s names the file %s", r.name, of, file)
				}
			}
			if of == cdsFile {
				starts[r.name] = true
			}
		}
	}
	for _, r := range h.read(ldsFile) {
		leads := slices.Clone(r.clusters)
		for _, file := range r.routes {
			for _, routes := range h.read(file) {
				leads = append(leads, routes.clusters...)
			}
		}
		for _, c := range leads {
			if !starts[c] && !h.excused[c] {
				return fmt.Sprintf("in an Envoy that starts, %s leads to the cluster %s", r.name, c)
			}
		}
	}
	for _, of := range []struct {
		listeners func(yield func(resource) bool)
		what      string
	}{{maps.Values(h.live), "a listener"}, {h.readers(), "what drains"}} {
		for _, c := range h.leads(of.listeners) {
			if _, there := h.clusters[c]; !there && !h.excused[c] {
				return fmt.Sprintf("%s leads to the cluster %s", of.what, c)
			}
		}
	}
	return ""
}
