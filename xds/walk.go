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
	// Parent is the message around the node's message, nil for the root. The parent of a payload is its Any.
	Parent *Node
	// Err is the reason if the payload of this Any or TypedStruct can't be walked.
	Err error

	field protoreflect.FieldDescriptor // in Parent; nil for the root and for payloads
	index int32                        // in a list

	payloads int32  // how many Anys are around
	shape    *shape // of Message; nil for a root of which nobody asked for it
	*rare
}

// rare is what few nodes have. A walk makes a Node of every message, so they are
// kept small.
type rare struct {
	key       protoreflect.MapKey
	standsFor proto.Message // what a changed TypedStruct becomes
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

// Field returns the full name of the field that holds the node, or holds the Any
// around it; empty for the root.
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

// Key returns the map key under which the field of Field holds the node, "" where that
// is no map.
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

// standsForMessage reports whether the node is a struct that stands for the message below
// it.
func (n *Node) standsForMessage() bool {
	_, _, ok := structFor(n.Message, n.OptionsType())
	return ok
}

// OptionsType returns the URL of the type for the key of a cluster's protocol options. Envoy reads a struct
// under the key as that type, whatever type the struct names. OptionsType is empty for other nodes.
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

// ProtocolOptions maps the keys of a cluster's protocol options to the API's messages. A release of Envoy
// accepts the keys that name its extensions.
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

// Walk calls visit for m and every message below it, parents first, through Any
// and TypedStruct. It walks lists and maps in order, so that two runs visit the same nodes
// in the same order. A payload that can't be read, or is of one of the user's own types (Registry.Walk),
// is a Node with Err. visit must not change a Node.
func Walk(m proto.Message, visit func(*Node)) {
	all.Walk(m, visit)
}

// Search is a Walk for messages of some types. It skips fields that can hold none of them,
// most of the endpoints of a cluster for example.
type Search struct {
	whole  bool // all messages are wanted
	wanted []protoreflect.FullName
	shapes sync.Map // protoreflect.MessageDescriptor → *shape
}

// NewSearch returns a Search for messages of those names.
func NewSearch(messages ...protoreflect.FullName) *Search { return &Search{wanted: messages} }

// Walk calls visit for m, for every message of the wanted types below it, and for
// what is around them, like Walk.
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

// held returns the type of the messages in a field of messages.
func held(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd.IsMap() {
		return fd.MapValue().Message()
	}
	return fd.Message()
}

// maxPayloads bounds how deeply payloads stand in payloads: each is unpacked out of
// the one around it, so that without a limit the time grows with the square.
const maxPayloads = 100

var errTooDeep = errors.New("nested too deeply")

type walker struct {
	visit    func(*Node) bool
	registry *Registry // of payloads
	shallow  bool      // TypedStructs are not looked into
	// pack packs all payloads in the form of Marshal, but for those whose type URL
	// Marshal writes in another way: rules have yet to see that.
	pack bool
	// restructured means that a message has taken the place of a TypedStruct.
	restructured bool

	ctx   context.Context // nil where nothing ends the walk
	ended error           // of ctx, once it has
	nodes int
}

// askEach is after how many nodes a walk asks its ctx, which takes as long as a node.
const askEach = 256

// over reports whether the ctx of the walk has ended.
func (w *walker) over() bool {
	if w.nodes++; w.ctx != nil && w.ended == nil && w.nodes%askEach == 0 {
		w.ended = w.ctx.Err()
	}
	return w.ended != nil
}

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

// replace packs the payload of an Any again, once it was edited or may be in another form than
// that of Marshal. An edited TypedStruct gives way to the message that it stands for, which
// the Any around it then takes over: restructured reports this.
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
	// Marshal can't fail: required fields, which v3 messages do not have, and the strings in it
	// were decoded before.
	value, _ := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
	if edited || !bytes.Equal(a.Value, value) {
		a.Value = value
		a.TypeUrl = URLPrefix + string(payload.ProtoReflect().Descriptor().FullName())
	}
	return false
}

// hasOtherURL reports whether Marshal writes the type URL of an Any in another way: Go finds
// the type behind the last slash, whatever is before it.
func hasOtherURL(a *anypb.Any) bool {
	url := a.GetTypeUrl()
	return url[:strings.LastIndexByte(url, '/')+1] != URLPrefix
}

// Unpack returns the message of the API in an Any, or the message that the TypedStruct in it stands for; nil
// if it can't be read.
func Unpack(a *anypb.Any) proto.Message { return unpack(a, "") }

// UnpackOptions is Unpack for a cluster's protocol options under a key.
func UnpackOptions(options map[string]*anypb.Any, key string) proto.Message {
	return unpack(options[key], URLPrefix+string(ProtocolOptions[key]))
}

// unpack is Unpack; if url is given, a struct is read as a message of that type.
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

// structFor returns the struct that stands for a message, and the URL of its type: options, if given, or the
// type that a TypedStruct names. ok is false for other messages.
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

func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
