package validate

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// dispatcher knows which rules look at a message of a type. It asks them when it
// first meets the type, so that a message costs one lookup. Not for concurrent use.
type dispatcher struct {
	rules []*Rule
	known map[protoreflect.MessageDescriptor]*audience
}

func newDispatcher(rules []*Rule) dispatcher {
	return dispatcher{rules, make(map[protoreflect.MessageDescriptor]*audience)}
}

// audience is who looks at messages of a type.
type audience struct {
	// everywhere are the rules that look at a message wherever it stands, rules those
	// that name their messages: not in metadata, which Envoy does not look at.
	everywhere, rules []*Rule
	// gathered says that a rule has the messages gathered.
	gathered bool
}

func (d dispatcher) audience(n *xds.Node) *audience {
	md := n.Message.ProtoReflect().Descriptor()
	known := d.known[md]
	if known == nil {
		known = &audience{}
		for _, r := range d.rules {
			known.gathered = known.gathered || slices.Contains(r.Collect, md.FullName())
			switch {
			case r.Node == nil && r.Lookup == nil || !r.looksAt(md):
			case len(r.Messages) > 0:
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
func (r *Rule) looksAt(md protoreflect.MessageDescriptor) bool {
	switch {
	case r.Wants != nil:
		return r.Wants(md)
	case len(r.Messages) > 0:
		return slices.Contains(r.Messages, md.FullName())
	}
	return true
}
