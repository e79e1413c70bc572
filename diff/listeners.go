package diff

import (
	"slices"
	"strconv"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/xds"
)

// listener adds the effects of a changed listener.
func (l *effectList) listener(e xds.Edited) {
	was, is := listenerOf(e.Was), listenerOf(e.Is)
	k := e.Key()
	switch {
	case was == nil && is == nil: // Envoy ignores an api_listener that comes by LDS
	case was == nil:
		at := addresses(is)
		l.add(k, Effect{Kind: ListenerAdded, Sockets: at}, "is new, at %s", listed(at))
	case is == nil:
		at := addresses(was)
		l.add(k, Effect{Kind: ListenerDrains, Sockets: at}, "is removed: %s drains", listed(at))
	case !updatedInPlace(was, is):
		at := addresses(was)
		to := ""
		if now := addresses(is); !slices.Equal(at, now) {
			to = ", and it moves to " + listed(now)
		}
		l.add(k, Effect{Kind: ListenerDrains, Sockets: at}, "is replaced, because of %s: %s drains%s",
			diag.Few(outside(was, is), mostNamed), listed(at), to)
	default:
		l.chains(k, was, is)
	}
}

// mostNamed is the largest number of names in the text of an effect.
const mostNamed = 4

// chains adds the effects of a listener that Envoy updates in place: each filter chain that the new version lacks
// drains.
func (l *effectList) chains(k xds.Key, was, is *listenerv3.Listener) {
	stays := make(map[string]bool)
	for _, c := range chainsOf(is) {
		stays[canonical(c.ProtoReflect())] = true
	}
	at, drains := addresses(was), 0
	for _, c := range chainsOf(was) {
		if stays[canonical(c.ProtoReflect())] {
			continue
		}
		drains++
		what := "filter chain " + c.name
		l.add(k, Effect{Kind: FilterChainDrains, Part: c.name, Sockets: at}, "at %s stays, and its %s drains", listed(at), what)
	}
	if drains == 0 {
		l.add(k, Effect{Kind: ListenerUpdated, Sockets: at}, "is updated in place: nothing drains")
	}
}

// listenerOf returns the listener in a resource; nil for none, and for an api_listener.
func listenerOf(r *xds.Resource) *listenerv3.Listener {
	if r == nil {
		return nil
	}
	l := r.Message().(*listenerv3.Listener)
	if l.GetApiListener() != nil {
		return nil
	}
	return l
}

// chain is a filter chain with a name for people.
type chain struct {
	*listenerv3.FilterChain
	name string
}

// chainsOf returns the filter chains of a listener, the default chain last.
func chainsOf(l *listenerv3.Listener) []chain {
	var all []chain
	for i, c := range l.GetFilterChains() {
		name := strconv.Quote(c.GetName())
		switch match := c.GetFilterChainMatch(); {
		case c.GetName() != "":
		case len(match.GetServerNames()) > 0:
			name = "for " + diag.Few(match.GetServerNames(), mostNamed)
		default:
			name = strconv.Itoa(i)
		}
		all = append(all, chain{c, name})
	}
	if c := l.GetDefaultFilterChain(); c != nil {
		all = append(all, chain{c, "(default)"})
	}
	return all
}

// addresses returns the addresses of a listener in words.
func addresses(l *listenerv3.Listener) (list []string) {
	list = append(list, address(l.GetAddress()))
	for _, a := range l.GetAdditionalAddresses() {
		list = append(list, address(a.GetAddress()))
	}
	if l.GetInternalListener() != nil {
		return []string{"internal connections"}
	}
	return list
}

func listed(names []string) string { return strings.Join(names, ", ") }

// inPlace lists the fields that Envoy changes without replacing the listener.
var inPlace = map[protoreflect.Name]bool{"filter_chains": true, "default_filter_chain": true, "filter_chain_matcher": true}

// updatedInPlace reports whether Envoy updates a listener in place: only fields of inPlace differ, and the new version
// has filter chains. Envoy compares lists as sets, and an absent field equals its empty value.
func updatedInPlace(was, is *listenerv3.Listener) bool {
	return len(is.GetFilterChains()) > 0 && proxyProtocol(was) == proxyProtocol(is) && len(outside(was, is)) == 0
}

// outside returns the fields beside inPlace by which Envoy distinguishes two listeners.
func outside(was, is *listenerv3.Listener) (names []string) {
	a, b := was.ProtoReflect(), is.ProtoReflect()
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if inPlace[fd.Name()] {
			continue
		}
		same := equivalentField(fd, a, b)
		if fd.Name() == "enable_reuse_port" { // an absent field equals false here, but its default is true
			same = same && reusesPort(was) == reusesPort(is)
		}
		if !same {
			names = append(names, string(fd.Name()))
		}
	}
	if len(names) == 0 && len(is.GetFilterChains()) == 0 {
		names = append(names, "filter_chains")
	}
	if len(names) == 0 && proxyProtocol(was) != proxyProtocol(is) {
		names = append(names, "use_proxy_proto")
	}
	return names
}

func reusesPort(l *listenerv3.Listener) bool {
	return l.GetEnableReusePort() == nil || l.GetEnableReusePort().GetValue()
}

// proxyProtocol reports whether the first filter chain reads the PROXY protocol, which a listener filter does.
func proxyProtocol(l *listenerv3.Listener) bool {
	chains := l.GetFilterChains()
	if len(chains) == 0 {
		return l.GetDefaultFilterChain().GetUseProxyProto().GetValue()
	}
	return chains[0].GetUseProxyProto().GetValue()
}

// equivalent reports whether two messages of one type are equal for Envoy's comparison of listeners.
func equivalent(a, b protoreflect.Message) bool {
	if one, ok := a.Interface().(*anypb.Any); ok {
		two := b.Interface().(*anypb.Any)
		x, errX := one.UnmarshalNew()
		y, errY := two.UnmarshalNew()
		if errX != nil || errY != nil || x.ProtoReflect().Descriptor() != y.ProtoReflect().Descriptor() {
			return proto.Equal(one, two)
		}
		return equivalent(x.ProtoReflect(), y.ProtoReflect())
	}
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		if !equivalentField(fields.Get(i), a, b) {
			return false
		}
	}
	return true
}

func equivalentField(fd protoreflect.FieldDescriptor, a, b protoreflect.Message) bool {
	switch one, two := a.Get(fd), b.Get(fd); {
	case !a.Has(fd) && !b.Has(fd):
		return true
	case fd.IsList():
		return sameSet(fd, one.List(), two.List())
	case fd.IsMap(): // a set of entries
		return one.Equal(two)
	case fd.Message() != nil:
		return equivalent(one.Message(), two.Message())
	default:
		return one.Equal(two)
	}
}

// sameSet reports whether two lists have equivalent elements in any order.
func sameSet(fd protoreflect.FieldDescriptor, a, b protoreflect.List) bool {
	if a.Len() != b.Len() {
		return false
	}
	taken := make([]bool, b.Len())
	for i := range a.Len() {
		found := false
		for j := 0; j < b.Len() && !found; j++ {
			if !taken[j] && (fd.Message() == nil && a.Get(i).Equal(b.Get(j)) || fd.Message() != nil && equivalent(a.Get(i).Message(), b.Get(j).Message())) {
				taken[j], found = true, true
			}
		}
		if !found {
			return false
		}
	}
	return true
}
