package upstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimeservice "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/xds"
)

// nameOfB returns a name of the authority b.
func nameOfB(typ, name string) string { return "xdstp://b/" + typ + "/" + name }

func routeNameOfB(name string) string {
	return nameOfB("envoy.config.route.v3.RouteConfiguration", name)
}

func endpointsNameOfB(name string) string {
	return nameOfB("envoy.config.endpoint.v3.ClusterLoadAssignment", name)
}

// setAll publishes a Snapshot of resources.
func (c *controlPlane) setAll(all map[resource.Type][]types.Resource) {
	c.t.Helper()
	c.n++
	s, err := cachev3.NewSnapshot(fmt.Sprint(c.n), all)
	if err == nil {
		err = c.cache.SetSnapshot(context.Background(), "a", s)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// requested returns the names in all requests, and the types of the requests.
func (c *controlPlane) requested() (names, of []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		names, of = append(names, r.names...), append(of, r.of.API)
	}
	slices.Sort(names)
	slices.Sort(of)
	return slices.Compact(names), slices.Compact(of)
}

// clusterWithEndpoints returns a cluster that subscribes to endpoints by a service name.
func clusterWithEndpoints(name, serviceName string) *clusterv3.Cluster {
	c := edsCluster(name)
	c.EdsClusterConfig.ServiceName = serviceName
	return c
}

// withAuthorityB gives an Upstream a server for the names of the authority b.
func withAuthorityB(address string, more func(*Upstream)) func(*Upstream) {
	return func(u *Upstream) {
		u.authorities = append(u.authorities, newAuthority(u, "b", []Server{{Address: address}}))
		if more != nil {
			more(u)
		}
	}
}

// TestAuthorities: the resources of a control plane refer to names of an authority that has another control plane.
func TestAuthorities(t *testing.T) {
	overEach(t, testAuthorities)
}

func testAuthorities(t *testing.T, by Transport) {
	main, b := newControlPlane(t), newControlPlane(t)
	main.setAll(map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", routeNameOfB("r"), "")},
		resource.ClusterType:  {clusterWithEndpoints("web", endpointsNameOfB("web")), edsCluster("own"), &clusterv3.Cluster{Name: nameOfB("envoy.config.cluster.v3.Cluster", "spoof")}},
		resource.EndpointType: {endpoints("own")},
	})
	b.setAll(map[resource.Type][]types.Resource{
		resource.RouteType: {routes(routeNameOfB("r"))}, resource.EndpointType: {endpoints(endpointsNameOfB("web"))},
		resource.ClusterType: {edsCluster("of nobody")},
	})
	atMain, _ := main.listen(socketOf(t))
	socket := socketOf(t)
	atB, stop := b.listen(socket)
	f := followed(t, by, withAuthorityB(atB, func(u *Upstream) { u.options.Runtime = nil }), atMain)
	all := []string{"CDS/own", "CDS/web", "EDS/own", "EDS/" + endpointsNameOfB("web"), "LDS/l", "RDS/" + routeNameOfB("r")}
	first := f.wait(true, has(all...))
	if s := f.State(); !s.Connected || s.Server != atMain {
		t.Errorf("%+v", s)
	}
	if names, of := b.requested(); !slices.Equal(names, []string{endpointsNameOfB("web"), routeNameOfB("r")}) || !slices.Equal(of, []string{"EDS", "RDS"}) {
		t.Errorf("the authority gets requests of %q for %q", of, names)
	}
	if names, _ := main.requested(); slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "xdstp:") }) {
		t.Errorf("the other control plane gets requests for %q", names)
	}

	// Each server gets the verdict on its own resources.
	f.Judged(load.Judgement{N: first.N, Findings: diag.List{{
		Code: "a-rule", Message: "it is wrong", Resource: diag.Resource{Type: xds.RouteConfiguration.URL(), Name: routeNameOfB("r")},
	}}})
	eventually(t, "the authority gets a NACK", func() bool {
		_, nacks := b.answers(xds.RouteConfiguration)
		return slices.ContainsFunc(nacks, func(text string) bool { return strings.Contains(text, "it is wrong") })
	})

	// The server of the authority ends: the resources of the authority stay, and the state has the error.
	stop()
	eventually(t, "the authority is gone", func() bool {
		s := f.State()
		return !s.Connected && strings.HasPrefix(s.Error, "authority b: ") && strings.Contains(s.Error, socket)
	})
	f.wait(true, has(all...))
	b.listen(socket)
	eventually(t, "the authority is back", func() bool { return f.State().Connected })

	// Nothing refers to the authority any more.
	main.setAll(map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", "r", "")}, resource.RouteType: {routes("r")}, resource.ClusterType: {edsCluster("own")},
		resource.EndpointType: {endpoints("own")},
	})
	f.wait(true, has("CDS/own", "EDS/own", "LDS/l", "RDS/r"))

	// A listener and a cluster refer to the authority again. The resources of the authority have not changed.
	main.setAll(map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", routeNameOfB("r"), "")}, resource.ClusterType: {clusterWithEndpoints("web", endpointsNameOfB("web")), edsCluster("own")},
		resource.EndpointType: {endpoints("own")},
	})
	f.wait(true, has(all...))
}

// TestAuthorityIsGone: the server of an authority never answers. After bounds.absentAfter, the Contents have the other
// resources, and a finding that names the server.
func TestAuthorityIsGone(t *testing.T) {
	main := newControlPlane(t)
	main.setAll(map[resource.Type][]types.Resource{resource.ListenerType: {listener("l", routeNameOfB("r"), "")}, resource.ClusterType: {}})
	at, _ := main.listen(socketOf(t))
	nobody := socketOf(t)
	f := followed(t, DeltaAggregated, withAuthorityB("unix:"+nobody, func(u *Upstream) { u.options.Runtime = nil }), at)
	c := f.wait(true, has("LDS/l"))
	if len(c.Findings) != 1 || c.Findings[0].Severity != diag.Warning || !strings.Contains(c.Findings[0].Message, nobody) {
		t.Errorf("%v", c.Findings)
	}
	if s := f.State(); s.Connected || !strings.Contains(s.Error, "authority b") {
		t.Errorf("%+v", s)
	}
}

// TestAuthorityFailover: the client follows the second server of an authority while the first server does not answer.
func TestAuthorityFailover(t *testing.T) {
	main, first, second := newControlPlane(t), newControlPlane(t), newControlPlane(t)
	main.setAll(map[resource.Type][]types.Resource{resource.ListenerType: {listener("l", routeNameOfB("r"), "")}, resource.ClusterType: {}})
	for domain, c := range map[string]*controlPlane{"first": first, "second": second} {
		is := routes(routeNameOfB("r"))
		is.VirtualHosts = []*routev3.VirtualHost{{Name: domain, Domains: []string{domain}}}
		c.setAll(map[resource.Type][]types.Resource{resource.RouteType: {is}})
	}
	at, _ := main.listen(socketOf(t))
	path := socketOf(t)
	other, _ := second.listen(socketOf(t))
	f := followed(t, DeltaAggregated, withAuthorityB("unix:"+path, func(u *Upstream) {
		u.options.Runtime = nil
		b := u.authorities[1]
		b.servers, b.errs = append(b.servers, Server{Address: other}), make([]error, 2)
	}), at)
	from := func(domain string) func(load.Contents) bool {
		return func(c load.Contents) bool {
			return slices.ContainsFunc(c.Files, func(f *decode.File) bool {
				return slices.ContainsFunc(f.Resources, func(r *xds.Resource) bool {
					is, ok := r.Message().(*routev3.RouteConfiguration)
					return ok && is.VirtualHosts[0].Name == domain
				})
			})
		}
	}
	f.wait(true, from("second"))
	_, stop := first.listen(path)
	f.wait(true, from("first"))
	stop()
	f.wait(true, from("second"))
	if s := f.State(); !s.Connected || s.Server != at {
		t.Errorf("%+v", s)
	}
}

// TestSpelling: a listener and a server spell a name in two ways, both other than the canonical spelling.
func TestSpelling(t *testing.T) {
	overEach(t, func(t *testing.T, by Transport) {
		main, b := newControlPlane(t), newControlPlaneOf(t, cachev3.NewSnapshotCache(false, cachev3.IDHash{}, nil))
		main.setAll(map[resource.Type][]types.Resource{
			resource.ListenerType: {listener("l", routeNameOfB("r?b=%32&a=1"), "")}, resource.ClusterType: {},
		})
		at, _ := main.listen(socketOf(t))
		b.setAll(map[resource.Type][]types.Resource{resource.RouteType: {routes(routeNameOfB("r?a=1&b=2"))}})
		atB, _ := b.listen(socketOf(t))
		f := followed(t, by, withAuthorityB(atB, func(u *Upstream) { u.options.Runtime, u.bounds.absentAfter = nil, 20*time.Second }), at)
		f.wait(true, has("LDS/l", "RDS/"+routeNameOfB("r?a=1&b=2")))
	})
}

// TestSpellingOfServer: a server sends and removes a resource by a name that is not in the canonical spelling.
func TestSpellingOfServer(t *testing.T) {
	layer := nameOfB("envoy.service.runtime.v3.Runtime", "layer?b=2&a=%31")
	w, now := newStreamState(New(Options{Name: "xds://test", Runtime: []string{layer}}).authorities[0], true, nil), time.Now()
	w.follow(now)
	put := func(of *xds.Type, r response) {
		t.Helper()
		if is, err := w.apply(of, r, now); err != nil || is.unasked != nil {
			t.Fatal(is.unasked, err)
		}
		w.follow(now)
	}
	other, canonical := routeNameOfB("r?b=2&a=%31"), routeNameOfB("r?a=1&b=2")
	put(xds.Listener, response{resources: []*discoveryv3.Resource{wrap("l", listener("l", other, ""))}})
	put(xds.RouteConfiguration, response{resources: []*discoveryv3.Resource{wrap(other, routes(other))}})
	if c := w.contents(false); !has("LDS/l", "RDS/"+canonical)(c) || c.Findings != nil {
		t.Errorf("%q, %v", keys(c), c.Findings)
	}
	put(xds.Runtime, response{resources: []*discoveryv3.Resource{wrap(layer, &runtimeservice.Runtime{Name: layer})}})
	put(xds.Runtime, response{removed: []string{layer}})
	put(xds.RouteConfiguration, response{removed: []string{other}})
	if c := w.contents(false); !has("LDS/l")(c) {
		t.Errorf("after the removal: %q", keys(c))
	}
}

// TestAuthorityIsInsecure: a listener refers to a secret of an authority without TLS.
func TestAuthorityIsInsecure(t *testing.T) {
	main := newControlPlane(t)
	secret := nameOfB("envoy.extensions.transport_sockets.tls.v3.Secret", "s")
	main.setAll(map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", "r", secret)}, resource.RouteType: {routes("r")}, resource.ClusterType: {},
	})
	at, _ := main.listen(socketOf(t))
	b := newControlPlane(t)
	atB, _ := b.listen("tcp")
	f := followed(t, DeltaAggregated, withAuthorityB(atB, func(u *Upstream) { u.options.Runtime = nil }), at)
	c := f.wait(true, has("LDS/l", "RDS/r"))
	if !slices.ContainsFunc(c.Findings, func(d diag.Diagnostic) bool { return strings.Contains(d.Message, "has no TLS") }) {
		t.Errorf("%v", c.Findings)
	}
	if names, _ := b.requested(); names != nil {
		t.Errorf("an insecure server is asked for %q", names)
	}
}

// TestAuthorityModel edits two control planes at random. The authority adds a route configuration before a listener
// refers to it, and removes the route configuration only after the listener. No Contents have a listener without its
// route configuration.
func TestAuthorityModel(t *testing.T) {
	overEach(t, testAuthorityModel)
}

func testAuthorityModel(t *testing.T, by Transport) {
	for seed := range uint64(2) {
		playAuthorities(t, by, seed)
	}
}

// playAuthorities edits both control planes by a seed.
func playAuthorities(t *testing.T, by Transport, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	// A cache with ads true answers a client by state of the world only if the client names all its resources.
	main, b := newControlPlane(t), newControlPlaneOf(t, cachev3.NewSnapshotCache(false, cachev3.IDHash{}, nil))
	var listeners, out []string // the route configurations of listeners, and the route configurations of b
	publishB := func() {
		all := make([]types.Resource, len(out))
		for i, name := range out {
			all[i] = routes(routeNameOfB(name))
		}
		b.setAll(map[resource.Type][]types.Resource{resource.RouteType: all})
	}
	publish := func() {
		all := make([]types.Resource, len(listeners))
		for i, name := range listeners {
			all[i] = listener("l"+name, routeNameOfB(name), "")
		}
		main.setAll(map[resource.Type][]types.Resource{resource.ListenerType: all, resource.ClusterType: {}})
	}
	publishB()
	publish()
	atMain, _ := main.listen(socketOf(t))
	atB, _ := b.listen(socketOf(t))
	f := followed(t, by, withAuthorityB(atB, func(u *Upstream) {
		u.options.Runtime, u.bounds.absentAfter = nil, 20*time.Second
	}), atMain)
	check := func(c load.Contents) {
		is := keys(c)
		for _, key := range is {
			if name, ok := strings.CutPrefix(key, "LDS/l"); ok && !slices.Contains(is, "RDS/"+routeNameOfB(name)) {
				t.Fatalf("seed %d: contents %d have %q", seed, c.N, is)
			}
		}
	}
	wanted := func(c load.Contents) bool {
		check(c)
		var want []string
		for _, name := range listeners {
			want = append(want, "LDS/l"+name, "RDS/"+routeNameOfB(name))
		}
		return has(want...)(c)
	}
	for range 12 {
		name := fmt.Sprint(random.IntN(4))
		if i := slices.Index(listeners, name); i >= 0 {
			listeners = slices.Delete(listeners, i, i+1)
			publish()
			if random.IntN(2) == 0 {
				c := f.wait(true, wanted)
				f.Judged(load.Judgement{N: c.N, Accepted: true})
				out = slices.DeleteFunc(out, func(is string) bool { return is == name })
				publishB()
			}
		} else {
			if !slices.Contains(out, name) {
				out = append(out, name)
				publishB()
			}
			listeners = append(listeners, name)
			publish()
		}
		if random.IntN(3) > 0 {
			c := f.wait(true, wanted)
			f.Judged(load.Judgement{N: c.N, Accepted: true})
		}
	}
	f.wait(true, wanted)
}
