package validate

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// dispatcher finds the rules for a message by its type. It asks the rules once for each type, so each further
// message costs one map lookup. A dispatcher is not for concurrent use.
type dispatcher struct {
	rules []*Rule
	envoy *envoyapi.Version
	known map[protoreflect.MessageDescriptor]*audience
}

func newDispatcher(rules []*Rule, v *envoyapi.Version) dispatcher {
	return dispatcher{rules, v, make(map[protoreflect.MessageDescriptor]*audience)}
}

// audience lists the rules that look at messages of one type.
type audience struct {
	// everywhere lists the rules without Messages and MessagesOf, which see every message. rules lists the rules
	// with Messages or MessagesOf, which do not see messages inside typed_filter_metadata, because Envoy ignores
	// them.
	everywhere, rules []*Rule
	// gathered means that a rule collects the messages.
	gathered bool
}

func (d dispatcher) audience(n *xds.Node) *audience {
	md := n.Type()
	known := d.known[md]
	if known == nil {
		known = &audience{}
		for _, r := range d.rules {
			known.gathered = known.gathered || slices.Contains(r.Collect, md.FullName())
			switch {
			case r.Node == nil && r.Lookup == nil || !r.looksAt(md, d.envoy):
			case len(r.Messages) > 0, r.MessagesOf != nil:
				known.rules = append(known.rules, r)
			default:
				known.everywhere = append(known.everywhere, r)
			}
		}
		d.known[md] = known
	}
	return known
}

// looksAt reports whether the rule judges messages of a type.
func (r *Rule) looksAt(md protoreflect.MessageDescriptor, v *envoyapi.Version) bool {
	switch {
	case r.Wants != nil:
		return r.Wants(md)
	case r.MessagesOf != nil:
		return r.MessagesOf(v, md.FullName())
	case len(r.Messages) > 0:
		return slices.Contains(r.Messages, md.FullName())
	}
	return true
}
