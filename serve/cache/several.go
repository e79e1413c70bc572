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

// A client that sends several sets of dynamic parameters, such as a cache for other clients, can have
// several variants of a resource. In its view each variant has a name of its own, and what the client asks
// for is a collection of those that its parameters match. No text of a message has these bytes, which are
// no UTF-8.
const (
	ofVariant = "\xff" // between the name of a resource and the constraints of the variant; none where it is for all
	ofSet     = "\xfe" // between a name that a client asks for and the number of the parameters; none for the first
)

// mostSets bounds the sets of parameters of a stream.
const mostSets = 100

// constrained are constraints by their text in the names of variants: those of all variants that were ever
// named.
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

// of returns constraints by their text.
func (c *constrained) of(text string) params.Constraints {
	is, ok := c.Load(text)
	if !ok {
		return params.Or() // no client
	}
	return is.(params.Constraints)
}

// plain returns the name of a resource without what tells a variant or a set of parameters.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ofVariant)
	name, _, _ = strings.Cut(name, ofSet)
	return name
}

// set returns the number of a set of parameters, in the order in which the client sent them.
func (s *Stream) set(of params.Parameters) (int, error) {
	same := func(p params.Parameters) bool { return maps.Equal(p, of) }
	if i := slices.IndexFunc(s.sets, same); i >= 0 {
		return i, nil
	}
	if len(s.sets) == mostSets {
		return 0, status.Errorf(codes.ResourceExhausted, "more than %d sets of dynamic parameters on one stream", mostSets)
	}
	s.mu.Lock()
	s.sets = append(s.sets, of)
	n := len(s.sets)
	s.mu.Unlock()
	if n == 2 {
		return 1, s.cache.locates(s, true)
	}
	return n - 1, nil
}

// ParameterBytes returns how many bytes the sets of parameters hold that the client has sent. The goroutine of the
// stream calls it.
func (s *Stream) ParameterBytes() (bytes int) {
	for _, set := range s.sets {
		for key, value := range set {
			bytes += heldByParameter + len(key) + len(value)
		}
	}
	return bytes
}

// heldByParameter is what a map holds for a parameter, beside its text.
const heldByParameter = 100

// inSets adds to names the sets of parameters that they are of.
func inSets(names []string, sets []int) {
	for i, set := range sets {
		if set > 0 {
			names[i] += ofSet + strconv.Itoa(set)
		}
	}
}

// classOfSeveral returns the class of clients with several sets of parameters.
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

// withoutMembers returns a Snapshot without variants of virtual hosts and of endpoints of LEDS. By state of the
// world they stand in the resources that ask for them, and variants for several clients can't stand there together.
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

// name gives each variant a name of its own.
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

// several is what a client with several sets of parameters asks for, beside the names of a subscription,
// which all are collections.
type several struct {
	sets        []params.Parameters
	constraints *constrained
	// asked are the sets of parameters with which the client asks for a name, a collection or all.
	asked map[string][]params.Parameters
}

// newSeveral returns what a client with those sets of parameters asks for by names.
func newSeveral(names map[string]struct{}, sets []params.Parameters, c *constrained) *several {
	v := &several{sets: sets, constraints: c, asked: make(map[string][]params.Parameters)}
	for name := range names {
		v.asked[plain(name)] = append(v.asked[plain(name)], v.set(name))
	}
	return v
}

// set returns the parameters with which the client asks for a name.
func (v *several) set(asked string) params.Parameters {
	_, number, _ := strings.Cut(asked, ofSet)
	set, _ := strconv.Atoi(number)
	return v.sets[set]
}

// asks takes over what the client asks for from now on.
func (s *Stream) asks(sub *subscription, names map[string]struct{}, wildcard bool) {
	if !s.view.several {
		sub.ask(names, wildcard)
		s.collect(sub)
		return
	}
	names = maps.Clone(names)
	if wildcard {
		names["*"] = struct{}{}
	}
	before := sub.names
	sub.several = newSeveral(names, s.sets, &s.view.constraints)
	sub.ask(names, false)
	sub.collections = names
	for name := range before {
		if _, still := names[name]; !still {
			sub.asksLess(plain(name))
		}
	}
}

// asksLess owes the client the errors of names of which the client may get no variant any more: until now, it asked
// by other parameters as well, for that name or for all resources of a collection.
func (s *subscription) asksLess(asked string) {
	if s.asksByName(asked) {
		s.owesError(asked)
	}
	if asked != "*" && !xdstp.IsCollection(asked) {
		return
	}
	for name := range s.several.asked {
		s.owesError(name)
	}
}

// matches reports whether what a client asks for by a name is, among others, the variant of a name.
func (v *several) matches(asked, name string) bool {
	set := v.set(asked)
	asked = plain(asked)
	name, text, _ := strings.Cut(name, ofVariant)
	return (asked == name || asked == "*" || xdstp.Collection(name) == asked) && v.constraints.of(text).Matches(set)
}

// gets reports whether the client asks for the variant of a name, by any set of parameters.
func (v *several) gets(name string) bool {
	name, text, _ := strings.Cut(name, ofVariant)
	of := v.constraints.of(text)
	return slices.ContainsFunc([]string{name, "*", xdstp.Collection(name)}, func(asked string) bool {
		return slices.ContainsFunc(v.asked[asked], of.Matches)
	})
}

// variantsNamed returns those of all resources, sorted by name, that are variants of one.
func variantsNamed(all []*xds.Resource, name string) []*xds.Resource {
	from := sort.Search(len(all), func(i int) bool { return all[i].Name >= name })
	to := from
	for to < len(all) && plain(all[to].Name) == name {
		to++
	}
	return all[from:to]
}

// namedUntilNow returns the versions of what a client has that sends now a second set of parameters, by the
// names of variants.
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
			versions[name] = unsure // in a variant that nobody knows
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

// members returns the resources of a state that a client gets by a name: the variants of one resource, or
// those of all, or of a collection.
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
