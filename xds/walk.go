package xds

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Node is one message of a Walk.
type Node struct {
	// Message is the message, as its generated Go type.
	Message proto.Message
	// Parent is the Node of the message around Message, nil for the root. Parent of a payload is the Node of the
	// Any or TypedStruct.
	Parent *Node
	// Err is the reason if Message is an Any or a TypedStruct, and its payload can't be walked.
	Err error

	field protoreflect.FieldDescriptor // in Parent; nil for the root and for payloads
	index int32                        // in a list

	payloads int32  // how many payloads are around: the contents of Anys and TypedStructs
	shape    *shape // of Message; nil for a root before shapeIn
	*rare
}

// rare has the fields that few Nodes need. A walk makes a Node of every message, so that a Node has to be small.
type rare struct {
	key       protoreflect.MapKey
	standsFor proto.Message // the message that takes the place of an edited TypedStruct
}

// Name returns the full name of the node's message.
func (n *Node) Name() protoreflect.FullName { return n.Type().FullName() }

// Type returns the type of the node's message.
func (n *Node) Type() protoreflect.MessageDescriptor {
	if n.shape == nil {
		return n.Message.ProtoReflect().Descriptor()
	}
	return n.shape.md
}

// Field returns the full name of the field that holds the node; for a payload, the field that holds its Any. Field
// is empty for the root.
func (n *Node) Field() protoreflect.FullName {
	for ; n != nil; n = n.Parent {
		if n.field != nil {
			return n.field.FullName()
		}
	}
	return ""
}

// InList reports whether the node is an element of a list.
func (n *Node) InList() bool { return n.field != nil && n.field.IsList() }

// InMap reports whether the node is the value of an entry of a map.
func (n *Node) InMap() bool { return n.field != nil && n.field.IsMap() }

// Key returns the map key under which the field of Field holds the node, or "" if the field is no map.
func (n *Node) Key() string {
	for ; n != nil; n = n.Parent {
		if n.field != nil {
			if n.field.IsMap() {
				return n.key.String()
			}
			break
		}
	}
	return ""
}

// Path returns the path of the node in the message that was walked.
func (n *Node) Path() Path {
	if n.Parent == nil {
		return ""
	}
	p := n.Parent.Path()
	if n.field == nil {
		if n.Parent.standsForMessage() {
			return p.Field("value")
		}
		return p
	}
	p = p.Field(string(n.field.Name()))
	switch {
	case n.field.IsMap():
		return p.Key(n.key.String())
	case n.field.IsList():
		return p.Index(int(n.index))
	default:
		return p
	}
}

// Enclosing returns the nearest message of type M around the node, or nil.
func Enclosing[M proto.Message](n *Node) (M, *Node) {
	for p := n.Parent; p != nil; p = p.Parent {
		if m, ok := p.Message.(M); ok {
			return m, p
		}
	}
	var none M
	return none, nil
}

// InMetadata reports whether the node stands in typed_filter_metadata, which Envoy decodes and
// ignores.
func (n *Node) InMetadata() bool {
	for ; n != nil; n = n.Parent {
		if n.field != nil && n.field.FullName() == "envoy.config.core.v3.Metadata.typed_filter_metadata" {
			return true
		}
	}
	return false
}

// standsForMessage reports whether the node is a struct, and its payload is the message that the struct stands for.
func (n *Node) standsForMessage() bool {
	_, _, ok := structFor(n.Message, n.OptionsType())
	return ok
}

// OptionsType returns a type URL if the node is the payload of an entry of a cluster's protocol options: the type
// of the entry's key. Envoy reads a struct in the entry as this type, whatever type the struct names. OptionsType
// is empty for other nodes.
func (n *Node) OptionsType() string {
	if n.Parent == nil || n.Parent.field == nil || n.Parent.field.FullName() != protocolOptions {
		return ""
	}
	if name, ok := ProtocolOptions[n.Parent.key.String()]; ok {
		return URLPrefix + string(name)
	}
	return ""
}

const protocolOptions = "envoy.config.cluster.v3.Cluster.typed_extension_protocol_options"

// ProtocolOptions maps each key of a cluster's protocol options to the message that Envoy expects there. An Envoy
// accepts only the keys that name its extensions.
var ProtocolOptions = map[string]protoreflect.FullName{
	"envoy.extensions.upstreams.http.reverse_tunnel.v3.ReverseTunnelUpstreamCodecOptions": "envoy.extensions.upstreams.http.reverse_tunnel.v3.ReverseTunnelUpstreamCodecOptions",
	"envoy.extensions.upstreams.http.v3.HttpProtocolOptions":                              "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
	"envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions":                                "envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions",
	"envoy.filters.network.redis_proxy":                                                   "envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions",
	"envoy.filters.network.thrift_proxy":                                                  "envoy.extensions.filters.network.thrift_proxy.v3.ThriftProtocolOptions",
	"envoy.redis_proxy":                                                                   "envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions",
	"envoy.upstreams.http.http_protocol_options":                                          "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
	"envoy.upstreams.tcp.tcp_protocol_options":                                            "envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions",
}

// Walk calls visit for m and every message below it, parents first, through Any and TypedStruct. Lists are in
// order, and maps in the order of their keys. If a payload can't be read, or is of one of the user's own types (see
// Registry.Walk), the Node of its Any or TypedStruct has an Err. visit must not change a Node.
func Walk(m proto.Message, visit func(*Node)) {
	all.Walk(m, visit)
}

// Search is a Walk for messages of some types. A Search skips the fields that can hold none of them, such as most
// of the fields of endpoints.
type Search struct {
	whole  bool // the Search is for all messages; wanted is empty
	wanted []protoreflect.FullName
	shapes sync.Map // protoreflect.MessageDescriptor → *shape
}

// NewSearch returns a Search for the messages with the given full names.
func NewSearch(messages ...protoreflect.FullName) *Search { return &Search{wanted: messages} }

// Walk is the function Walk for fewer messages: visit gets m, each message of a wanted type, and each message that
// can hold a wanted message. Since an Any can hold any message, visit also gets each Any and its payload.
func (s *Search) Walk(m proto.Message, visit func(*Node)) {
	w := walker{visit: func(n *Node) bool { visit(n); return false }}
	w.walk(&Node{Message: m, shape: s.shapeOf(m.ProtoReflect().Descriptor())})
}

// reaches reports whether md is wanted, or a message inside it may be. seen are the types visited so far.
func (s *Search) reaches(md protoreflect.MessageDescriptor, seen map[protoreflect.MessageDescriptor]bool) bool {
	switch md.FullName() {
	case "google.protobuf.Any", "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct":
		return true
	}
	if slices.Contains(s.wanted, md.FullName()) {
		return true
	}
	seen[md] = true
	return slices.ContainsFunc(messageFields(md), func(fd protoreflect.FieldDescriptor) bool {
		return !seen[held(fd)] && s.reaches(held(fd), seen)
	})
}

// held returns the type of the messages in a field; nil for a map whose values are no messages.
func held(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd.IsMap() {
		return fd.MapValue().Message()
	}
	return fd.Message()
}

// maxPayloads bounds the nesting of payloads in payloads. Each payload is unpacked from the payload around it:
// without a limit, the time of a walk grows with the square of the depth.
const maxPayloads = 100

var errTooDeep = errors.New("nested too deeply")

type walker struct {
	visit    func(*Node) bool
	registry *Registry // of payloads
	shallow  bool      // the walk does not enter TypedStructs
	// pack makes the walk pack all payloads in the form of Marshal. An unedited payload stays as it is if Marshal
	// would rewrite the type URL of its Any, since rules report such a URL.
	pack bool
	// restructured means that a message has taken the place of a TypedStruct.
	restructured bool

	ctx   context.Context // nil if nothing ends the walk
	ended error           // the error of ctx; nil while the walk goes on
	nodes int             // how many nodes the walk has begun
}

// askEach is the number of nodes after which a walk asks its ctx again. Asking takes as long as a node.
const askEach = 256

// over counts a node, and reports whether the ctx of the walk has ended.
func (w *walker) over() bool {
	if w.nodes++; w.ctx != nil && w.ended == nil && w.nodes%askEach == 0 {
		w.ended = w.ctx.Err()
	}
	return w.ended != nil
}

// walk walks n and the messages below n. changed reports whether visit changed one of them.
func (w *walker) walk(n *Node) (changed bool) {
	if w.over() {
		return false
	}
	var payload proto.Message
	shape := n.shapeIn()
	if n.Parent != nil {
		n.payloads = max(n.payloads, n.Parent.payloads)
	}
	switch m := n.Message.(type) {
	case *anypb.Any:
		if m.GetTypeUrl() != "" {
			payload, n.Err = w.registry.unpack(m)
		}
	case *xdstypev3.TypedStruct, *udpatypev1.TypedStruct, *structpb.Struct:
		if url, value, ok := structFor(m, n.OptionsType()); ok && !w.shallow {
			payload, n.Err = w.registry.ofStruct(url, value)
		}
	}
	if n.payloads >= maxPayloads {
		payload, n.Err = nil, errTooDeep
	}
	changed = w.visit(n)
	if payload != nil && n.Err == nil {
		md := payload.ProtoReflect().Descriptor()
		child := &Node{Message: payload, Parent: n, payloads: n.payloads + 1, shape: w.registry.searchFor(md, shape.search).shapeOf(md)}
		edited := w.walk(child)
		if edited || w.pack {
			w.restructured = n.replace(child, edited) || w.restructured
		}
		return changed || edited
	}
	shape.each(n.Message, func(s *slot, m proto.Message, index int, key protoreflect.MapKey) {
		child := Node{Message: m, Parent: n, field: s.fd, index: int32(index), shape: s.of}
		if s.fd.IsMap() {
			child.rare = &rare{key: key}
		}
		changed = w.walk(&child) || changed
	})
	return changed
}

// replace puts child, the walked payload of n, back into n. An Any gets the child in the form of Marshal. If n is a
// TypedStruct and child was edited, child takes the place of n in the Any around n; restructured reports this case.
func (n *Node) replace(child *Node, edited bool) (restructured bool) {
	payload := child.Message
	if child.rare != nil && child.standsFor != nil {
		payload = child.standsFor
	}
	a, ok := n.Message.(*anypb.Any)
	switch {
	case !ok && edited:
		if n.rare == nil {
			n.rare = &rare{}
		}
		n.standsFor = payload
		return true
	case !ok || !edited && hasOtherURL(a):
		return false
	}
	// Marshal can't fail: v3 messages have no required fields, and decoding has checked that all strings are UTF-8.
	value, _ := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
	if edited || !bytes.Equal(a.Value, value) {
		a.Value = value
		a.TypeUrl = URLPrefix + string(payload.ProtoReflect().Descriptor().FullName())
	}
	return false
}

// hasOtherURL reports whether Marshal rewrites the type URL of an Any, because its prefix is not URLPrefix. Go
// accepts each prefix that ends with a slash.
func hasOtherURL(a *anypb.Any) bool {
	url := a.GetTypeUrl()
	return url[:strings.LastIndexByte(url, '/')+1] != URLPrefix
}

// Unpack returns the message of the API in an Any, or the message that the TypedStruct in it stands for; nil
// if it can't be read.
func Unpack(a *anypb.Any) proto.Message { return unpack(a, "") }

// UnpackOptions returns the message of a cluster's protocol options under a key; nil if the key is absent, or if
// the message can't be read. A struct is read as the message of ProtocolOptions.
func UnpackOptions(options map[string]*anypb.Any, key string) proto.Message {
	return unpack(options[key], URLPrefix+string(ProtocolOptions[key]))
}

// unpack is Unpack. If url is not empty, it is the type of the message that a struct in a stands for.
func unpack(a *anypb.Any, url string) proto.Message {
	m, err := a.UnmarshalNew()
	if url, value, ok := structFor(m, url); ok {
		var api *Registry
		m, err = api.ofStruct(url, value)
	}
	if err != nil {
		return nil
	}
	return m
}

// structFor returns the Struct in m, and the type URL of the message that the Struct stands for: options, or
// without options the type that a TypedStruct names. ok is false unless m is a TypedStruct, or a Struct with
// options.
func structFor(m proto.Message, options string) (url string, value *structpb.Struct, ok bool) {
	switch s := m.(type) {
	case *xdstypev3.TypedStruct:
		return cmp.Or(options, s.GetTypeUrl()), s.GetValue(), true
	case *udpatypev1.TypedStruct:
		return cmp.Or(options, s.GetTypeUrl()), s.GetValue(), true
	case *structpb.Struct:
		return options, s, options != ""
	}
	return "", nil, false
}

// sortedKeys returns the keys of a map in the order of their texts.
func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
