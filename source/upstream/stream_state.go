package upstream

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/source/syntax"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// maxName is the longest name of a resource in bytes.
const maxName = 16 << 10

// streamState has the resources that a server has sent in a session, and the subscriptions of the session.
type streamState struct {
	authority      *authority
	options        *Options
	bounds         *bounds
	secure         bool             // secrets may come
	wantedByOthers map[xds.Key]bool // names of the authority that authority.wanted has returned
	types          map[*xds.Type]*subscription
	before         map[xds.Key]*entry // of earlier Contents, for files that stay the same; nil after the first Contents
	bytes          int64
	count          int
	ended          bool // the session has ended; guarded by Upstream.mu
}

// subscription is the subscription to a type, with the resources of the type.
type subscription struct {
	wildcard bool
	answered bool      // a response of the type has come
	since    time.Time // the time of the subscription to the wildcard
	names    map[string]time.Time
	absent   map[string]bool // names that the server has no resource for
	entries  map[string]*entry
}

// entry is a resource.
type entry struct {
	file     *decode.File
	data     []byte
	refs     []xds.Key
	demand   xds.Path  // of a config source by which Envoy itself asks a server; empty for none
	expires  time.Time // zero without a TTL
	secret   bool      // the resource holds a secret
	unnamed  string    // the fault of the name; empty for a valid name
	repeated bool      // the response has the name more than once
}

func newStreamState(a *authority, secure bool, before map[xds.Key]*entry) *streamState {
	u := a.upstream
	return &streamState{authority: a, options: &u.options, bounds: &u.bounds, secure: secure, types: make(map[*xds.Type]*subscription), before: before}
}

// of returns the subscription to a type.
func (st *streamState) of(t *xds.Type) *subscription {
	s := st.types[t]
	if s == nil {
		s = &subscription{names: make(map[string]time.Time), absent: make(map[string]bool), entries: make(map[string]*entry)}
		st.types[t] = s
	}
	return s
}

// asked reports whether the session subscribes to a resource. asked is also true for a resource without a name, so that
// the server gets a NACK.
func (st *streamState) asked(t *xds.Type, name string) bool {
	s := st.types[t]
	switch {
	case s == nil:
		return false
	case name == "":
		return true
	case t.Asked == xds.InGroups:
		_, ok := s.names[t.Group(name)]
		return ok
	case s.wildcard:
		return st.authority.upstream.owner(name) == st.authority
	}
	_, ok := s.names[name]
	return ok
}

// applied is the effect of a response.
type applied struct {
	changed bool     // resources have changed
	refs    bool     // the references of resources have changed
	unasked []string // names of resources that nobody has asked for
	bytes   int      // the size of the resources in the response
}

// apply applies a response. An error ends the stream.
func (st *streamState) apply(t *xds.Type, m response, now time.Time) (is applied, err error) {
	s := st.of(t)
	s.answered = true
	put := func(name string, e *entry) {
		changed, refs := st.put(t, name, e)
		is.changed, is.refs = is.changed || changed, is.refs || refs
	}
	sent := make(map[string]bool, len(m.resources))
	for _, r := range m.resources {
		name := nameOf(t, r)
		is.bytes += len(r.GetResource().GetValue())
		switch {
		case len(name) > maxName:
			return is, fmt.Errorf("the server sends a %s whose name has %d bytes, and %d are allowed", t.Noun, len(name), maxName)
		case !st.asked(t, name):
			is.unasked = append(is.unasked, name)
		case r.GetResource() == nil && s.entries[name] != nil: // a heartbeat
			s.entries[name].alive(r, now)
		case r.GetResource() == nil:
			s.absent[name] = true
		default:
			e := st.entry(t, name, r, now)
			e.repeated = sent[name]
			put(name, e)
			r.Resource = nil // the entry has a copy
		}
		sent[name] = true
		if st.bytes > st.bounds.total {
			return is, fmt.Errorf("the server sends more than %d bytes of resources", st.bounds.total)
		}
		if st.options.Budget.full() {
			return is, fmt.Errorf("the control plane sends more than %d bytes of resources for all nodes together", st.options.Budget.most)
		}
		if st.count > st.bounds.resources {
			return is, fmt.Errorf("the server sends more than %d resources", st.bounds.resources)
		}
	}
	for _, name := range m.removed {
		name = t.Canonical(name)
		put(name, nil)
		if _, named := s.names[name]; named {
			s.absent[name] = true
		}
	}
	for name := range s.entries {
		if !sent[name] && (m.whole || name == "") {
			put(name, nil)
		}
	}
	return is, nil
}

// nameOf returns the name of a resource of a type in a response, in its canonical spelling.
func nameOf(t *xds.Type, r *discoveryv3.Resource) string {
	name := r.GetName()
	if name == "" {
		name = r.GetResourceName().GetName()
	}
	return t.Canonical(name)
}

// put replaces a resource; a nil entry removes the resource. changed means that the resource has changed. refs means
// that the references of the resource have changed.
func (st *streamState) put(t *xds.Type, name string, e *entry) (changed, refs bool) {
	s := st.of(t)
	was, before := s.entries[name], st.bytes
	defer func() { st.options.Budget.add(st.bytes - before) }()
	if was != nil {
		st.bytes -= int64(len(was.data) + len(name))
		st.count--
		delete(s.entries, name)
	}
	if e != nil {
		st.bytes += int64(len(e.data) + len(name))
		st.count++
		s.entries[name] = e
		delete(s.absent, name)
	}
	same := was == e || was != nil && e != nil && was.repeated == e.repeated && bytes.Equal(was.data, e.data)
	return !same, !slices.Equal(was.references(), e.references())
}

func (e *entry) references() []xds.Key {
	if e == nil {
		return nil
	}
	return e.refs
}

// alive prolongs the life of a resource with a TTL.
func (e *entry) alive(r *discoveryv3.Resource, now time.Time) {
	if e.expires = (time.Time{}); r.GetTtl() != nil {
		e.expires = now.Add(r.GetTtl().AsDuration())
	}
}

// entry decodes a resource. An unchanged resource keeps its file.
func (st *streamState) entry(t *xds.Type, name string, r *discoveryv3.Resource, now time.Time) *entry {
	data := document(t, r, st.options.Streams)
	for _, was := range []*entry{st.of(t).entries[name], st.before[xds.Key{Type: t, Name: name}]} {
		if was != nil && bytes.Equal(was.data, data) {
			e := *was
			e.alive(r, now)
			return &e
		}
	}
	e := &entry{file: st.decode(t, name, r, data), data: data}
	e.alive(r, now)
	for _, is := range e.file.Resources {
		if is.Type != t || t.Canonical(is.Name) != name && t.Asked != xds.InGroups {
			e.unnamed = fmt.Sprintf("the response has %s under the name %s", is.Key, xds.Key{Type: t, Name: name})
		}
		e.secret = e.secret || is.HoldsSecret()
		e.refs = append(e.refs, references(is)...)
		if e.demand == "" {
			e.demand = onDemand(is)
		}
	}
	slices.SortFunc(e.refs, compareKeys)
	e.refs = slices.Compact(e.refs)
	return e
}

// decode decodes a resource whose document is data.
func (st *streamState) decode(t *xds.Type, name string, r *discoveryv3.Resource, data []byte) *decode.File {
	of := decode.SourceOptions{Envoy: st.options.Envoy, Streams: st.options.Streams}
	read := func(data []byte) *decode.File {
		return decode.NewSource(st.options.Name+"/"+t.API+"/"+name, syntax.Binary, data, of).Decode(nil)
	}
	file := read(data)
	if body := st.revised(file, data); body != nil {
		locator := r.GetResourceName()
		if locator.GetName() != "" {
			locator = proto.CloneOf(locator)
			locator.Name = t.Canonical(locator.Name)
		}
		file = read(document(t, &discoveryv3.Resource{
			Name: t.Canonical(r.GetName()), ResourceName: locator, Aliases: r.GetAliases(), Metadata: r.GetMetadata(),
			Ttl: r.GetTtl(), CacheControl: r.GetCacheControl(), Resource: body,
		}, st.options.Streams))
	}
	return file
}

// revised returns the resource of a file with self in place of each gRPC config source that leads to the control plane,
// and with names in their canonical spelling. data is the content of the file. revised returns nil if the resource
// stays as it is.
func (st *streamState) revised(file *decode.File, data []byte) *anypb.Any {
	if len(file.Resources) != 1 || len(st.options.Clusters) == 0 && !bytes.Contains(data, []byte(xdstp.Scheme)) {
		return nil
	}
	composed, changed := file.Resources[0].Compose(func(_ *xds.Composer, n *xds.Node) bool {
		changed := n.Respell()
		sub, ok := n.Subscription()
		if !ok || !st.leadsHere(sub.Source) {
			return changed
		}
		source := proto.CloneOf(sub.Source)
		source.ConfigSourceSpecifier = &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{TransportApiVersion: corev3.ApiVersion_V3}}
		sub.Set(source)
		return true
	})
	if !changed {
		return nil
	}
	body := &anypb.Any{}
	if anypb.MarshalFrom(body, composed.Message(), proto.MarshalOptions{Deterministic: true}) != nil {
		return nil
	}
	return body
}

// leadsHere reports whether a config source asks the control plane through one of the clusters of the options.
func (st *streamState) leadsHere(source *corev3.ConfigSource) bool {
	return slices.ContainsFunc(clustersOf(source), func(name string) bool { return slices.Contains(st.options.Clusters, name) })
}

// clustersOf returns the clusters through which a config source asks a server by gRPC.
func clustersOf(source *corev3.ConfigSource) (names []string) {
	api := source.GetApiConfigSource()
	for _, g := range api.GetGrpcServices() {
		if name := g.GetEnvoyGrpc().GetClusterName(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func compareKeys(a, b xds.Key) int {
	if a.Type != b.Type {
		return a.Type.Turn - b.Type.Turn
	}
	return strings.Compare(a.Name, b.Name)
}

// document returns a resource as a binary DiscoveryResponse. Files have no TTL.
func document(t *xds.Type, r *discoveryv3.Resource, streams bool) []byte {
	body := r.GetResource()
	wrapper := &discoveryv3.Resource{Name: r.GetName(), ResourceName: r.GetResourceName(), Aliases: r.GetAliases(), Metadata: r.GetMetadata(), Resource: body}
	if streams {
		wrapper.Ttl, wrapper.CacheControl = r.GetTtl(), r.GetCacheControl()
	}
	plain := wrapper.Ttl == nil && wrapper.CacheControl == nil && wrapper.ResourceName == nil && len(wrapper.Aliases) == 0 && wrapper.Metadata == nil
	if !plain || t.Asked == xds.InGroups {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(wrapper)
		if err == nil {
			body = &anypb.Any{TypeUrl: xds.URLPrefix + string(wrapper.ProtoReflect().Descriptor().FullName()), Value: value}
		}
	}
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{body}}) // was decoded before
	return data
}

// references returns the resources that a resource subscribes to at the server. A Key without a name is a wildcard.
func references(r *xds.Resource) (refs []xds.Key) {
	for _, s := range r.Facts().Subscriptions {
		ours := xds.FromSnapshot(s.Source) || s.Target == xds.Endpoints && s.Source.GetConfigSourceSpecifier() == nil
		if ours && (s.Name != "" || s.Target == xds.ScopedRoutes) {
			refs = append(refs, xds.Key{Type: s.Target, Name: s.Target.Canonical(s.Name)})
		}
	}
	if r.Type == xds.ScopedRoutes {
		if name := r.Message().(*routev3.ScopedRouteConfiguration).GetRouteConfigurationName(); name != "" {
			refs = append(refs, xds.Key{Type: xds.RouteConfiguration, Name: xds.RouteConfiguration.Canonical(name)})
		}
	}
	return refs
}

// onDemand returns the path of the first config source of xds.AskedByEnvoy; empty for none.
func onDemand(r *xds.Resource) xds.Path {
	if nodes := xds.AskedByEnvoy(r); len(nodes) > 0 {
		return nodes[0].Path()
	}
	return ""
}

// change is a change of the subscription to a type.
type change struct {
	of                     *xds.Type
	subscribe, unsubscribe []string
	first                  bool // the session has no subscription to the type yet
}

// follow subscribes to the names that resources refer to, unsubscribes from all other names, and drops their resources.
// A dropped resource may have had the only reference to another resource. So follow repeats until no dropped resource
// has references.
func (st *streamState) follow(now time.Time) (changes []change) {
	for again := true; again; {
		var more []change
		more, again = st.followOnce(now)
		changes = append(changes, more...)
	}
	return changes
}

// followOnce is follow without repetition. dropped means that a dropped resource had references.
func (st *streamState) followOnce(now time.Time) (changes []change, dropped bool) {
	wanted := st.wanted()
	for _, t := range xds.InTurn {
		names, isWanted := wanted[t]
		s := st.types[t]
		if !isWanted && s == nil {
			continue
		}
		c := change{of: t, first: s == nil}
		s = st.of(t)
		if t.Wildcard && c.first && st.authority.name == "" {
			s.wildcard, s.since = true, now
		}
		for name := range names {
			if _, ok := s.names[name]; !ok && name != "" {
				s.names[name] = now
				c.subscribe = append(c.subscribe, name)
			}
		}
		for name := range s.names {
			if !names[name] {
				delete(s.names, name)
				delete(s.absent, name)
				c.unsubscribe = append(c.unsubscribe, name)
			}
		}
		dropped = st.drop(t) || dropped
		if s.wildcard {
			c.subscribe, c.unsubscribe = nil, nil
		}
		if c.first || len(c.subscribe)+len(c.unsubscribe) > 0 {
			slices.Sort(c.subscribe)
			slices.Sort(c.unsubscribe)
			changes = append(changes, c)
		}
	}
	return changes, dropped
}

// drop removes the resources of a type that the session no longer subscribes to. refs means that removed resources had
// references.
func (st *streamState) drop(t *xds.Type) (refs bool) {
	for name := range st.types[t].entries {
		if !st.asked(t, name) {
			_, had := st.put(t, name, nil)
			refs = had || refs
		}
	}
	return refs
}

// wanted returns the names of the authority to which resources and the bootstrap refer, for each type.
func (st *streamState) wanted() map[*xds.Type]map[string]bool {
	all := make(map[*xds.Type]map[string]bool)
	if st.authority.name == "" {
		all[xds.Cluster], all[xds.Listener] = map[string]bool{}, map[string]bool{}
	}
	want := func(k xds.Key) {
		if k.Type == xds.Secret && !st.secure || !st.options.Transport.carries(k.Type) || st.authority.upstream.owner(k.Name) != st.authority {
			return
		}
		if all[k.Type] == nil {
			all[k.Type] = make(map[string]bool)
		}
		all[k.Type][k.Name] = true
	}
	for _, name := range st.options.Runtime {
		want(xds.Key{Type: xds.Runtime, Name: name})
	}
	for k := range st.references() {
		want(k)
	}
	for k := range st.wantedByOthers {
		want(k)
	}
	return all
}

// references yields the names that the resources refer to.
func (st *streamState) references() iter.Seq[xds.Key] {
	return func(yield func(xds.Key) bool) {
		for _, s := range st.types {
			for _, e := range s.entries {
				for _, k := range e.refs {
					if !yield(k) {
						return
					}
				}
			}
		}
	}
}

// absent returns the names that the server has no resource for.
func (st *streamState) absent() map[xds.Key]bool {
	all := make(map[xds.Key]bool)
	for t, s := range st.types {
		for name := range s.absent {
			all[xds.Key{Type: t, Name: name}] = true
		}
	}
	return all
}

// mostMissing is the largest number of names that missing returns.
const mostMissing = 100

// missing returns what the server has not sent yet, such as "LDS" or "EDS web", and when the next name counts as
// absent; zero if there is none.
func (st *streamState) missing(now time.Time) (missing []string, next time.Time) {
	waits := func(since time.Time) bool {
		at := since.Add(st.bounds.absentAfter)
		if !at.After(now) {
			return false
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
		return true
	}
	for _, t := range xds.InTurn {
		s := st.types[t]
		if s == nil {
			continue
		}
		required := slices.Contains(xds.Entrypoints, t)
		if s.wildcard && !s.answered && (waits(s.since) || required) {
			missing = append(missing, t.API)
		}
		if s.wildcard || t.Asked == xds.InGroups {
			continue
		}
		for name, since := range s.names {
			if s.entries[name] == nil && !s.absent[name] && waits(since) && len(missing) < mostMissing {
				missing = append(missing, t.API+" "+name)
			}
		}
	}
	slices.Sort(missing)
	return missing, next
}

// expire removes the resources whose TTL has ended. refs means that the references of resources have changed. next is
// the time at which the next TTL ends; zero for none.
func (st *streamState) expire(now time.Time) (refs bool, next time.Time) {
	for t, s := range st.types {
		for name, e := range s.entries {
			switch {
			case e.expires.IsZero():
			case !e.expires.After(now):
				_, had := st.put(t, name, nil)
				refs = had || refs
			case next.IsZero() || e.expires.Before(next):
				next = e.expires
			}
		}
	}
	return refs, next
}

// entries returns all resources.
func (st *streamState) entries() map[xds.Key]*entry {
	all := make(map[xds.Key]*entry, st.count)
	for t, s := range st.types {
		for name, e := range s.entries {
			all[xds.Key{Type: t, Name: name}] = e
		}
	}
	return all
}

// contents returns the Contents without a number.
func (st *streamState) contents(partial bool) load.Contents {
	c := load.Contents{Partial: partial, Files: make([]*decode.File, 0, st.count)}
	all := st.entries()
	for _, k := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		e := all[k]
		c.Files = append(c.Files, e.file)
		c.Findings = append(c.Findings, st.faults(k, e)...)
	}
	slices.SortFunc(c.Files, compareFiles)
	return c
}

// compareFiles compares files by name.
func compareFiles(a, b *decode.File) int { return strings.Compare(a.Source.Name, b.Source.Name) }

// faults returns the findings about a resource that the file of the resource does not have.
func (st *streamState) faults(k xds.Key, e *entry) (list diag.List) {
	add := func(message, help string) {
		list = append(list, diag.Diagnostic{
			Code: codeUpstream.Name, Position: diag.Position{File: e.file.Source.Name}, Message: message, Help: help,
			Resource: diag.Resource{Type: k.Type.URL(), Name: k.Name},
		})
	}
	if e.unnamed != "" {
		add(e.unnamed, "correct the control plane: the name around a resource is the name of the resource")
	}
	if e.repeated {
		add(fmt.Sprintf("the response has the %s more than once", k), "correct the control plane: Envoy refuses such a response")
	}
	if e.secret && !st.secure {
		add(fmt.Sprintf("%s holds a secret, and the connection to the control plane has no TLS", k), secretHelp)
	}
	for _, ref := range e.refs {
		switch {
		case ref.Type == xds.Secret && !st.secureFor(ref.Name):
			add(fmt.Sprintf("%s subscribes to the %s, and the connection to the control plane has no TLS", k, ref), secretHelp)
		case !st.options.Transport.carries(ref.Type):
			add(fmt.Sprintf("%s subscribes to %s, and %s by state of the world can't ask for it", k, ref.Type.API, st.options.Transport),
				"give an incremental transport: --upstream-transport delta-ads or delta-grpc")
		}
	}
	return list
}

// secureFor reports whether a secret may come from the servers of its name.
func (st *streamState) secureFor(name string) bool {
	owner := st.authority.upstream.owner(name)
	if owner == st.authority {
		return st.secure
	}
	return !slices.ContainsFunc(owner.servers, func(s Server) bool { return !s.secure() })
}

const secretHelp = "serve secrets by TLS and give --upstream-ca, or connect by a Unix socket: xds+unix:PATH"
