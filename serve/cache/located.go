package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
	"xdspub/xds/params"
)

// A client that knows dynamic parameters sends them with each name, in a resource locator. The server sends
// this client each resource in a wrapper, whose resource_name has the constraints of the resource. Removals
// name the variant. Any other client gets the variants for its node as plain resources.
// https://github.com/cncf/xds/blob/main/proposals/TP2-dynamically-generated-cacheable-xds-resources.md

// introduce records the client at its first request, and the dynamic parameters of the locators at each
// request. introduce returns the names of the locators; sets has the number of each name's parameter set. The
// error is a gRPC status.
func (s *Stream) introduce(node *corev3.Node, locators []*discoveryv3.ResourceLocator) (names []string, sets []int, err error) {
	located := len(locators) > 0
	if s.sets == nil { // only this goroutine sets it
		p := s.cache.options.Parameters(node)
		if located {
			p = locators[0].GetDynamicParameters()
		}
		if err := s.cache.join(s, p, located, readsVerbatim(node)); err != nil {
			return nil, nil, err
		}
	}
	if located && !s.located {
		if err := s.cache.moveToLocated(s, false); err != nil {
			return nil, nil, err
		}
	}
	for _, l := range locators {
		set, err := s.set(l.GetDynamicParameters())
		if err != nil {
			return nil, nil, err
		}
		names, sets = append(names, l.GetName()), append(sets, set)
	}
	return names, sets, nil
}

// readsVerbatim reports whether a client accepts ads: {} as written. Envoy treats a config source without
// resource_api_version as one of the v2 API, and refuses it. A client without a user agent may be an Envoy.
func readsVerbatim(node *corev3.Node) bool {
	agent := node.GetUserAgentName()
	return agent != "" && agent != envoy
}

// join adds a stream to the class for Parameters.
func (c *Cache) join(s *Stream, p params.Parameters, located, verbatim bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, err := c.classOf(p)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.params, s.located, s.verbatim, s.sets = p, located, verbatim, []params.Parameters{p}
	s.setView(c.view(of, form{s.kind, located, verbatim}))
	return nil
}

// moveTo moves the stream to another class, which has the same resources as the class before.
func (s *Stream) moveTo(to *class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.setView(to.views[form{s.kind, s.located, s.verbatim}])
}

// setView sets the view of the stream.
func (s *Stream) setView(v *view) {
	if s.view != nil {
		s.view.remove(s)
	}
	s.view = v
	v.add(s)
	for _, sub := range s.subscriptions {
		for _, e := range sub.heartbeats.alive {
			v.startBeats(e.ttl())
		}
	}
}

// moveToLocated moves a stream to the view for clients with resource locators, or with several parameter
// sets. The client has sent its first locator, or its second parameter set. The error is a gRPC status.
func (c *Cache) moveToLocated(s *Stream, several bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, err := c.classOf(s.params)
	if several {
		of, err = c.classOfSeveral(), nil
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := c.view(of, form{s.kind, true, s.verbatim})
	for _, sub := range s.subscriptions {
		if several {
			sub.carryOver(sub.namedUntilNow(&v.constraints), make(map[string][]params.Constraints))
		} else {
			sub.carryOver(sub.locatedUntilNow())
		}
	}
	s.located = true
	s.setView(v)
	for _, sub := range s.subscriptions {
		s.subscribe(sub, sub.names, sub.wildcard)
	}
	return nil
}

// locatedUntilNow returns the versions and variants of the client's resources. The client begins to send
// locators, and has got its resources without constraints until now.
func (s *subscription) locatedUntilNow() (versions map[string]string, of map[string][]params.Constraints) {
	versions, of = make(map[string]string), make(map[string][]params.Constraints)
	for name := range s.hadNames() {
		if version := s.known(name); version != "" {
			versions[name] = version
		}
	}
	for _, r := range s.inFlight() {
		for _, name := range r.names() {
			versions[name] = unsure
		}
	}
	for name := range versions {
		of[name] = []params.Constraints{{}}
	}
	return versions, of
}

// locate adds the constraints to the encodings of a resource and to its version.
func (e *encoded) locate() {
	d := proto.CloneOf(e.delta)
	if d.Name = plain(d.Name); !e.For.None() {
		d.Name, d.ResourceName = "", &discoveryv3.ResourceName{Name: d.Name, DynamicParameterConstraints: e.For.Proto()}
		d.Version += "-" + hashOf(e.For.String())
	}
	e.delta = d
	e.wrapped = wrapped(&discoveryv3.Resource{Name: d.Name, ResourceName: d.ResourceName, Version: d.Version, Resource: d.Resource, Ttl: d.Ttl})
	e.sotw = wrapped(&discoveryv3.Resource{Name: d.Name, ResourceName: d.ResourceName, Version: d.Version, Resource: d.Resource})
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// constraintsOf returns state.constraints for a Snapshot.
func constraintsOf(s *xds.Snapshot) map[*xds.Type]func() string {
	all := make(map[*xds.Type]func() string)
	for _, t := range xds.Types {
		all[t] = sync.OnceValue(func() string {
			h := sha256.New()
			has := false
			for _, r := range s.Of(t) {
				if !r.For.None() {
					has = true
					io.WriteString(h, r.Name+"\x00"+r.For.String()+"\x00")
				}
			}
			if !has {
				return ""
			}
			return "-" + hex.EncodeToString(h.Sum(nil)[:4])
		})
	}
	return all
}

// Version returns the version of the resources of a type. For located resources the version covers the
// constraints.
func (s *state) Version(t *xds.Type) string {
	version := s.Snapshot.Version(t)
	if s.located {
		version += s.constraints[t]()
	}
	return version
}

// removedVariants returns the variants that an incremental response removes from a client, by name: removed
// variants, and variants that another variant replaces.
func (s *subscription) removedVariants(r *response) map[string][]params.Constraints {
	gone := make(map[string][]params.Constraints)
	for _, name := range r.removed {
		gone[name] = s.variantsOf(name)
	}
	for _, is := range r.changed {
		others := slices.DeleteFunc(s.variantsOf(is.Name), is.For.Equal)
		if len(others) > 0 {
			gone[is.Name] = others
		}
	}
	return gone
}

// variantsOf returns the variants of a resource that the client may have.
func (s *subscription) variantsOf(name string) []params.Constraints {
	if _, text, is := strings.Cut(name, ofVariant); is {
		return []params.Constraints{s.several.constraints.of(text)}
	}
	if several, ok := s.variants[name]; ok {
		return slices.Clone(several)
	}
	if s.at == nil {
		return nil
	}
	if r := s.at.find(s.of, name); r != nil {
		return []params.Constraints{r.For}
	}
	return nil
}

// tellRemoved adds removed variants to a response. Variants without constraints, and resources without
// variants, are removed by name only.
func (s *subscription) tellRemoved(m *discoveryv3.DeltaDiscoveryResponse, now *state, gone map[string][]params.Constraints) {
	removed := make(map[string]struct{}) // with several parameter sets a name may occur several times
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if len(gone[name]) == 0 && s.hasOther(name, now) {
			continue
		}
		for _, of := range gone[name] {
			if of.None() {
				continue
			}
			m.RemovedResourceNames = append(m.RemovedResourceNames, &discoveryv3.ResourceName{Name: plain(name), DynamicParameterConstraints: of.Proto()})
		}
		if len(gone[name]) == 0 || slices.ContainsFunc(gone[name], params.Constraints.None) {
			removed[plain(name)] = struct{}{}
		}
	}
	delete(removed, "*") // the wildcard itself is never removed
	m.RemovedResources = slices.Sorted(maps.Keys(removed))
}

// hasOther reports whether a client with several parameter sets gets another variant of a resource. A
// response then can't say that the resource is missing for one set.
func (s *subscription) hasOther(name string, now *state) bool {
	return s.several != nil && slices.ContainsFunc(variantsNamed(now.Of(s.of), plain(name)), func(r *xds.Resource) bool { return s.several.gets(r.Name) })
}
