package serve_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/serve/cache"
	"xdspub/xds"
	"xdspub/xds/params"
)

// FuzzVariants lets clients with dynamic parameters subscribe, acknowledge, refuse and reconnect at random,
// while resources and their variants change. Some clients have parameters from their nodes, some send
// resource locators, and some send several parameter sets. In the end each client must have exactly the
// resources that brute force selects from the last snapshot. An incremental client that sends locators with
// one parameter set must never have two variants of a resource.
func FuzzVariants(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { synctest.Test(t, func(t *testing.T) { selectAtRandom(t, seed) }) })
}

// TestRandomVariants runs FuzzVariants with fixed seeds.
func TestRandomVariants(t *testing.T) { runSeeds(t, selectAtRandom) }

// divided are ways to divide clients by exclusive constraints.
var divided = [][]string{
	{""}, {"env=prod"}, {"env=prod", "!env=prod"}, {"env=prod|env=qa", "env=test"}, {"env", "!env"},
	{"env=prod,version=1", "env=prod,!version=1", "!env=prod"}, {"env=prod,version", "env=prod,!version", "env=test,version=1"},
}

var variedTypes = map[string]*xds.Type{"c": xds.Cluster, "e": xds.Endpoints}

type variedWorld struct {
	t        *testing.T
	r        *rand.Rand
	pace     pace
	cache    *cache.Cache
	snapshot *xds.Snapshot
}

func (w *variedWorld) publish() {
	var words []string
	for _, letter := range slices.Sorted(maps.Keys(variedTypes)) {
		for _, name := range modelNames {
			for _, of := range divided[w.r.IntN(len(divided))] {
				if w.r.IntN(4) == 0 {
					continue
				}
				word := fmt.Sprintf("%s/%s@%d", letter, name, 1+w.r.IntN(3))
				if of != "" {
					word += "{" + of + "}"
				}
				words = append(words, word)
			}
		}
	}
	w.snapshot = after(w.snapshot, drawn(w.t, words), w.r)
	if err := w.cache.Publish(w.t.Context(), w.snapshot); err != nil {
		w.t.Fatal(err)
	}
}

func (w *variedWorld) trim() {
	if _, _, err := w.cache.Trim(w.t.Context(), time.Now().Add(time.Second)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *variedWorld) parameters() params.Parameters {
	p := make(params.Parameters)
	if env := []string{"prod", "test", "qa", "other", ""}[w.r.IntN(5)]; env != "" {
		p["env"] = env
	}
	if version := []string{"1", "2", ""}[w.r.IntN(3)]; version != "" {
		p["version"] = version
	}
	return p
}

// varied is a client with dynamic parameters.
type varied struct {
	*variedWorld
	*fake
	delta, locates bool
	sets           []params.Parameters
	asked          bool
	asks           map[*xds.Type]map[string][]int // by name: the numbers of parameter sets
	has            map[*xds.Type]map[string]string
	errors         map[*xds.Type]*heardErrors
	nonce, version map[*xds.Type]string
}

func (w *variedWorld) open(c *varied) {
	c.fake = newFake(w.t.Context(), w.pace)
	c.asked, c.asks, c.has = false, make(map[*xds.Type]map[string][]int), make(map[*xds.Type]map[string]string)
	c.errors = make(map[*xds.Type]*heardErrors)
	c.nonce, c.version = make(map[*xds.Type]string), make(map[*xds.Type]string)
	go c.serve(w.cache, c.delta)
}

func (c *varied) node() *corev3.Node {
	if c.asked {
		return nil
	}
	c.asked = true
	n := &corev3.Node{Id: "test"}
	if !c.locates {
		n.Metadata = &structpb.Struct{Fields: make(map[string]*structpb.Value)}
		for key, value := range c.sets[0] {
			n.Metadata.Fields[key] = structpb.NewStringValue(value)
		}
	}
	return n
}

// subscribe subscribes to a name, or unsubscribes from a name.
func (c *varied) subscribe() {
	letters := slices.Sorted(maps.Keys(variedTypes))
	of := variedTypes[letters[c.r.IntN(len(letters))]]
	names := modelNames
	if of == xds.Cluster && (len(c.asks[of]) == 0 || c.asks[of]["*"] != nil) {
		names = append([]string{"*"}, names...)
	}
	name, set := names[c.r.IntN(len(names))], c.r.IntN(len(c.sets))
	if c.asks[of] == nil {
		c.asks[of], c.has[of] = make(map[string][]int), make(map[string]string)
		c.errors[of] = newHeardErrors()
	}
	q := &discoveryv3.DeltaDiscoveryRequest{Node: nil, TypeUrl: of.URL()}
	locator := &discoveryv3.ResourceLocator{Name: name, DynamicParameters: c.sets[set]}
	if i := slices.Index(c.asks[of][name], set); i >= 0 && (c.delta || len(c.asks[of])+len(c.asks[of][name]) > 2) {
		if c.asks[of][name] = slices.Delete(c.asks[of][name], i, i+1); len(c.asks[of][name]) == 0 {
			delete(c.asks[of], name)
			delete(c.errors[of].is, name)
			c.errors[of].unsure[name] = true // the server may not see that, if a response is in flight
		}
		q.ResourceNamesUnsubscribe, q.ResourceLocatorsUnsubscribe = []string{name}, []*discoveryv3.ResourceLocator{locator}
	} else if i < 0 {
		if name != "*" {
			c.errors[of].subscribes(name, len(c.asks[of][name]) > 0)
		}
		c.asks[of][name] = append(c.asks[of][name], set)
		q.ResourceNamesSubscribe, q.ResourceLocatorsSubscribe = []string{name}, []*discoveryv3.ResourceLocator{locator}
	} else {
		return
	}
	c.drop(of)
	if !c.delta {
		c.request(of, nil)
		return
	}
	if c.locates {
		q.ResourceNamesSubscribe, q.ResourceNamesUnsubscribe = nil, nil
	} else {
		q.ResourceLocatorsSubscribe, q.ResourceLocatorsUnsubscribe = nil, nil
	}
	q.Node = c.node()
	c.ask(q)
}

// drop drops the resources that the client no longer subscribes to.
func (c *varied) drop(of *xds.Type) {
	for key := range c.has[of] {
		name, text, varies := strings.Cut(key, "{")
		if is := (params.Constraints{}); varies || true {
			if varies {
				is = constraints(text)
			}
			if !c.wants(of, name, is) {
				delete(c.has[of], key)
			}
		}
	}
}

// wants reports whether the client subscribes to a variant. A client without locators can't see which variant
// it has.
func (c *varied) wants(of *xds.Type, name string, is params.Constraints) bool {
	for _, asked := range []string{name, "*"} {
		for _, set := range c.asks[of][asked] {
			if !c.locates || is.Matches(c.sets[set]) {
				return true
			}
		}
	}
	return false
}

func (c *varied) request(of *xds.Type, refused *status.Status) {
	q := &discoveryv3.DiscoveryRequest{Node: c.node(), TypeUrl: of.URL(), VersionInfo: c.version[of], ResponseNonce: c.nonce[of], ErrorDetail: refused}
	for _, name := range slices.Sorted(maps.Keys(c.asks[of])) {
		for _, set := range c.asks[of][name] {
			if c.locates {
				q.ResourceLocators = append(q.ResourceLocators, &discoveryv3.ResourceLocator{Name: name, DynamicParameters: c.sets[set]})
			} else {
				q.ResourceNames = append(q.ResourceNames, name)
			}
		}
	}
	c.ask(q)
}

// hear receives a response, if one is waiting.
func (c *varied) hear(refuse bool) bool {
	var refused *status.Status
	if refuse {
		refused = &status.Status{Code: 3, Message: "no"}
	}
	select {
	case r := <-c.down:
		switch r := r.(type) {
		case *discoveryv3.DiscoveryResponse:
			of := xds.TypeOfURL(r.GetTypeUrl())
			var told []string
			for _, any := range r.GetResources() {
				told = append(told, nameOf(c.t, any))
			}
			c.fails(of, r.GetResourceErrors(), told, refuse)
			if c.nonce[of] = r.GetNonce(); !refuse {
				c.version[of] = r.GetVersionInfo()
				if cache.HoldsAll(of) {
					clear(c.has[of])
				}
				for _, any := range r.GetResources() {
					c.keep(of, nameOf(c.t, any))
				}
			}
			c.request(of, refused)
		case *discoveryv3.DeltaDiscoveryResponse:
			of := xds.TypeOfURL(r.GetTypeUrl())
			once(c.t, r)
			var told []string
			for _, res := range r.GetResources() {
				told = append(told, wrapperText(c.t, res))
			}
			c.fails(of, r.GetResourceErrors(), told, refuse)
			if !refuse {
				for _, name := range r.GetRemovedResources() {
					delete(c.has[of], name)
				}
				for _, name := range r.GetRemovedResourceNames() {
					delete(c.has[of], name.GetName()+constraintsText(c.t, name))
				}
				for _, res := range r.GetResources() {
					c.keep(of, wrapperText(c.t, res))
				}
				c.onlyOne(of)
			}
			c.ask(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: of.URL(), ResponseNonce: r.GetNonce(), ErrorDetail: refused})
		}
		return true
	default:
		return false
	}
}

// fails records the errors of a response. told are the resources of the response, as
// name@content{constraints}.
func (c *varied) fails(of *xds.Type, errors []*discoveryv3.ResourceError, told []string, refused bool) {
	for i, word := range told {
		word, _, _ = strings.Cut(word, "{")
		told[i], _, _ = strings.Cut(word, "@")
	}
	c.errors[of].hears(c.t, errors, told, func(name string) bool { return c.asks[of][name] != nil }, func(name string) {
		maps.DeleteFunc(c.has[of], func(id, _ string) bool { has, _, _ := strings.Cut(id, "{"); return has == name })
	}, refused)
}

// keep records a received resource, by name{constraints}.
func (c *varied) keep(of *xds.Type, word string) {
	id, is := word, "1"
	word, text, varies := strings.Cut(word, "{")
	name, content, ok := strings.Cut(word, "@")
	if id = name; varies {
		id += "{" + text
	}
	if ok {
		is = content
	}
	c.has[of][id] = is
	c.drop(of)
}

// onlyOne checks that the client doesn't have two variants of a resource.
func (c *varied) onlyOne(of *xds.Type) {
	if len(c.sets) > 1 {
		return
	}
	seen := make(map[string]bool)
	for id := range c.has[of] {
		name, _, _ := strings.Cut(id, "{")
		if seen[name] {
			c.t.Errorf("a client with %s has two variants of %q: %v", c.sets[0], name, c.has[of])
		}
		seen[name] = true
	}
}

// want returns the resources that the client must have in the end.
func (c *varied) want(of *xds.Type) map[string]string {
	want := make(map[string]string)
	for _, r := range c.snapshot.Of(of) {
		id, matches := r.Name, false
		for _, asked := range []string{r.Name, "*"} {
			for _, set := range c.asks[of][asked] {
				matches = matches || r.For.Matches(c.sets[set])
			}
		}
		if !r.For.None() && c.locates {
			id += constraintsText(c.t, &discoveryv3.ResourceName{DynamicParameterConstraints: r.For.Proto()})
		}
		if _, content, ok := strings.Cut(nameOf(c.t, anyOf(c.t, r)), "@"); matches && ok {
			want[id] = content
		} else if matches {
			want[id] = "1"
		}
	}
	if c.keeps() {
		for id, is := range c.has[of] {
			if want[id] == "" {
				want[id] = is
			}
		}
	}
	if !c.delta && !cache.HoldsAll(of) { // no response reports their removal
		for id, is := range c.has[of] {
			if name, _, _ := strings.Cut(id, "{"); want[id] == "" && (c.locates || c.snapshot.Lookup(of, name) == nil || !matchesAny(c.snapshot.Named(xds.Key{Type: of, Name: name}), c.sets[0])) {
				want[id] = is
			}
		}
	}
	return want
}

// wantErrors returns the errors that the client must know in the end, by name. A client that keeps resources
// gets no error for resources that it may have.
func (c *varied) wantErrors(of *xds.Type) map[string]string {
	want, heard, keeps := make(map[string]string), c.errors[of], c.keeps()
	refused := slices.Contains(slices.Collect(maps.Values(heard.unsure)), true)
	for name, sets := range c.asks[of] {
		list := c.snapshot.Named(xds.Key{Type: of, Name: name})
		gets := slices.ContainsFunc(slices.Concat(sets, c.asks[of]["*"]), func(set int) bool { return matchesAny(list, c.sets[set]) })
		_, has := c.has[of][name]
		mayHave := heard.unsure[name] || refused && !c.delta && cache.HoldsAll(of) // a response with the error would remove the resource, too
		switch {
		case name == "*", gets, keeps && has:
		case keeps && mayHave:
			if heard.is[name] != "" {
				want[name] = heard.is[name]
			}
		case len(list) > 0:
			want[name] = noVariant
		default:
			want[name] = notThere
		}
	}
	return want
}

// keeps reports whether the client has a gap, and must keep all resources: the snapshot has clusters that the
// client subscribes to by name, and none of them is for the client. The test's resources refer to no
// clusters, so a client with a wildcard has no gap.
func (c *varied) keeps() bool {
	exists := false
	for name := range c.asks[xds.Cluster] {
		list := c.snapshot.Named(xds.Key{Type: xds.Cluster, Name: name})
		if c.locates || name == "*" || matchesAny(list, c.sets[0]) {
			return false
		}
		exists = exists || len(list) > 0
	}
	return exists
}

func matchesAny(list []*xds.Resource, p params.Parameters) bool {
	return slices.ContainsFunc(list, func(r *xds.Resource) bool { return r.For.Matches(p) })
}

func selectAtRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	w := &variedWorld{t: t, r: r, pace: newPace(r), cache: cache.New(cache.Options{Parameters: ofMetadata})}
	w.publish()
	var clients []*varied
	for range 2 + r.IntN(3) {
		c := &varied{variedWorld: w, delta: r.IntN(2) == 0, locates: r.IntN(3) > 0, sets: []params.Parameters{w.parameters()}}
		for c.locates && r.IntN(2) == 0 {
			if p := w.parameters(); !slices.ContainsFunc(c.sets, func(is params.Parameters) bool { return maps.Equal(is, p) }) {
				c.sets = append(c.sets, p)
			}
		}
		w.open(c)
		clients = append(clients, c)
	}
	for range 60 {
		switch c := clients[r.IntN(len(clients))]; r.IntN(10) {
		case 0, 1:
			w.publish()
		case 2:
			w.trim()
		case 3, 4, 5:
			c.subscribe()
		case 6:
			if r.IntN(3) == 0 {
				c.cancel()
				<-c.ended
				w.open(c)
			}
		default:
			synctest.Wait()
			c.hear(r.IntN(4) == 0)
		}
		for _, c := range clients {
			c.sends()
		}
	}
	for range 3 {
		w.publish()
		w.trim()
		for i, c := range clients {
			c.rests(i)
		}
		clients[r.IntN(len(clients))].subscribe()
	}
	for _, c := range clients {
		c.cancel()
		<-c.ended
	}
}

// rests receives all waiting responses. It checks that the client has the subscribed resources of the
// snapshot, and the errors of missing ones.
func (c *varied) rests(number int) {
	for heard := true; heard; {
		heard = false
		c.sendsAll()
		time.Sleep(time.Minute)
		for synctest.Wait(); c.hear(false); synctest.Wait() {
			c.sendsAll()
			heard = true
		}
	}
	for of := range c.asks {
		asks := fmt.Sprintf("client %d (incremental: %v, locates: %v) with %v asks for %s %v", number, c.delta, c.locates, c.sets, of, c.asks[of])
		if want := c.want(of); !maps.Equal(c.has[of], want) {
			c.t.Errorf("%s: has %v, want %v", asks, c.has[of], want)
		}
		c.errors[of].holds(c.t, asks, c.wantErrors(of))
	}
}
