package cache

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
	"xdspub/xds/xdstp"
)

// A client with several parameter sets, such as a cache for other clients, can have several variants of a
// resource. In the client's view each variant has its own name, and each subscription is a collection of the
// matching variants. No name in a message has the
// separators of these names, because the separators are not valid UTF-8.
const (
	ofVariant = "\xff" // between a resource name and the constraints of a variant, which may be empty
	ofSet     = "\xfe" // between a subscribed name and the number of its parameter set; omitted for the first set
)

// mostSets is the largest number of parameter sets of a stream.
const mostSets = 100

// constrained maps the text in the name of a variant to the constraints. A text is never removed.
type constrained struct{ sync.Map }

// name returns the name of a variant.
func (c *constrained) name(name string, of params.Constraints) string {
	text := ""
	if !of.None() {
		text = of.String()
	}
	c.LoadOrStore(text, of)
	return name + ofVariant + text
}

// of returns the constraints for a text.
func (c *constrained) of(text string) params.Constraints {
	is, ok := c.Load(text)
	if !ok {
		return params.Or() // matches no client
	}
	return is.(params.Constraints)
}

// plain returns the name of a resource without the variant or parameter set.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ofVariant)
	name, _, _ = strings.Cut(name, ofSet)
	return name
}

// set returns the number of a parameter set, in the client's order, and records a new set. With the second
// set the stream moves to the class of clients with several sets. The error is a gRPC status. Only the
// goroutine of the stream may call set.
func (s *Stream) set(of params.Parameters) (int, error) {
	same := func(p params.Parameters) bool { return maps.Equal(p, of) }
	if i := slices.IndexFunc(s.sets, same); i >= 0 {
		return i, nil
	}
	if len(s.sets) == mostSets {
		return 0, status.Errorf(codes.ResourceExhausted, "more than %d sets of dynamic parameters on one stream: open another stream", mostSets)
	}
	s.mu.Lock()
	s.sets = append(s.sets, of)
	n := len(s.sets)
	s.mu.Unlock()
	if n == 2 {
		return 1, s.cache.moveToLocated(s, true)
	}
	return n - 1, nil
}

// ParameterBytes returns the memory of the client's parameter sets in bytes. Only the goroutine of the stream
// may call ParameterBytes.
func (s *Stream) ParameterBytes() (bytes int) {
	for _, set := range s.sets {
		for key, value := range set {
			bytes += heldByParameter + len(key) + len(value)
		}
	}
	return bytes
}

// heldByParameter is the memory of a parameter in a map, in bytes, without its text.
const heldByParameter = 100

// inSets adds to each name the number of its parameter set.
func inSets(names []string, sets []int) {
	for i, set := range sets {
		if set > 0 {
			names[i] += ofSet + strconv.Itoa(set)
		}
	}
}

// classOfSeveral returns the class of clients with several parameter sets, and creates the class if
// necessary.
func (c *Cache) classOfSeveral() *class {
	if i := slices.IndexFunc(c.classes, func(of *class) bool { return of.several }); i >= 0 {
		return c.classes[i]
	}
	of := newClass(nil)
	of.several = true
	if c.tree != nil {
		of.selection, of.served = &variants.Selection{Snapshot: c.tree.All()}, c.tree.All()
	}
	c.classes = append(c.classes, of)
	return of
}

// withoutMembers returns a Snapshot without variants of virtual hosts and LEDS endpoints. In a state of the
// world these are inlined into other resources, which can't hold variants for different clients.
func withoutMembers(s *xds.Snapshot) *xds.Snapshot {
	var change xds.Change
	for _, r := range s.All() {
		if r.Type.Asked == xds.InGroups && !r.For.None() {
			change.Removed = append(change.Removed, r)
		}
	}
	if change.Empty() {
		return s
	}
	return s.Apply(change)
}

// name returns a Snapshot with a different name for each variant.
func (v *view) name(s *xds.Snapshot) *xds.Snapshot {
	named := make(map[*xds.Resource]*xds.Resource)
	var all []*xds.Resource
	for _, r := range s.All() {
		is := v.named[r]
		if is == nil {
			is = r.Renamed(v.constraints.name(r.Name, r.For))
		}
		named[r] = is
		all = append(all, is)
	}
	v.named = named
	return xds.NewSnapshot(all)
}

// several holds the subscriptions of a client with several parameter sets. Each name is then a collection of
// variants.
type several struct {
	sets        []params.Parameters
	constraints *constrained
	// asked are the parameter sets of each subscribed name, collection or "*".
	asked map[string][]params.Parameters
}

// newSeveral returns the subscriptions to names that have the numbers of their parameter sets.
func newSeveral(names map[string]struct{}, sets []params.Parameters, c *constrained) *several {
	v := &several{sets: sets, constraints: c, asked: make(map[string][]params.Parameters)}
	for name := range names {
		v.asked[plain(name)] = append(v.asked[plain(name)], v.set(name))
	}
	return v
}

// set returns the parameter set of a subscribed name.
func (v *several) set(asked string) params.Parameters {
	_, number, _ := strings.Cut(asked, ofSet)
	set, _ := strconv.Atoi(number)
	return v.sets[set]
}

// subscribe replaces the names that the client subscribes to.
func (s *Stream) subscribe(sub *subscription, names map[string]struct{}, wildcard bool) {
	if !s.view.several {
		sub.replaceNames(names, wildcard)
		s.collect(sub)
		return
	}
	names = maps.Clone(names)
	if wildcard {
		names["*"] = struct{}{}
	}
	before := sub.names
	sub.several = newSeveral(names, s.sets, &s.view.constraints)
	sub.replaceNames(names, false)
	sub.collections = names
	for name := range before {
		if _, still := names[name]; !still {
			sub.queueErrorsOfLost(plain(name))
		}
	}
}

// queueErrorsOfLost queues the errors of names that may have lost their last variant: the client has
// unsubscribed from a name or a collection with one of its parameter sets.
func (s *subscription) queueErrorsOfLost(asked string) {
	if s.subscribesByName(asked) {
		s.queueError(asked)
	}
	if asked != "*" && !xdstp.IsCollection(asked) {
		return
	}
	for name := range s.several.asked {
		s.queueError(name)
	}
}

// matches reports whether a subscribed name covers the variant of a name.
func (v *several) matches(asked, name string) bool {
	set := v.set(asked)
	asked = plain(asked)
	name, text, _ := strings.Cut(name, ofVariant)
	return (asked == name || asked == "*" || xdstp.Collection(name) == asked) && v.constraints.of(text).Matches(set)
}

// gets reports whether any subscription covers the variant of a name.
func (v *several) gets(name string) bool {
	name, text, _ := strings.Cut(name, ofVariant)
	of := v.constraints.of(text)
	return slices.ContainsFunc([]string{name, "*", xdstp.Collection(name)}, func(asked string) bool {
		return slices.ContainsFunc(v.asked[asked], of.Matches)
	})
}

// variantsNamed returns the variants of a resource from all resources of its type, sorted by name.
func variantsNamed(all []*xds.Resource, name string) []*xds.Resource {
	prefix := name + ofVariant // web\xff follows web2\xff
	from := sort.Search(len(all), func(i int) bool { return all[i].Name >= prefix })
	to := from
	for to < len(all) && strings.HasPrefix(all[to].Name, prefix) {
		to++
	}
	return all[from:to]
}

// namedUntilNow returns the versions of the client's resources by the names of their variants. The client
// sends its second parameter set, and knew its resources by their plain names until now.
func (s *subscription) namedUntilNow(c *constrained) map[string]string {
	versions := make(map[string]string)
	for name := range s.hadNames() {
		version, all := s.known(name), s.variantsOf(name)
		for _, of := range all {
			if len(all) > 1 {
				version = unsure
			}
			versions[c.name(name, of)] = version
		}
		if len(all) == 0 && version != "" {
			versions[name] = unsure // of an unknown variant
		}
	}
	for _, r := range s.inFlight() {
		for _, is := range r.changed {
			versions[c.name(is.Name, is.For)] = unsure
		}
		for name, all := range r.gone {
			for _, of := range all {
				versions[c.name(name, of)] = unsure
			}
		}
	}
	return versions
}

// members returns the resources that a subscribed name covers: the variants of one resource, of a collection,
// or of all resources.
func (v *several) members(all []*xds.Resource, asked string) (list []*xds.Resource) {
	name, _, _ := strings.Cut(asked, ofSet)
	if name != "*" && !xdstp.IsCollection(name) {
		all = variantsNamed(all, name)
	}
	for _, r := range all {
		if v.matches(asked, r.Name) {
			list = append(list, r)
		}
	}
	return list
}
