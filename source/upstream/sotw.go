package upstream

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/internal/decoded"
	"xdspub/internal/grpcdial"
	"xdspub/xds"
)

// stateOfTheWorld is the codec of the protocol by state of the world.
type stateOfTheWorld struct {
	params map[string]string
	types  map[*xds.Type]*repeated
}

// repeated is what each request of a type repeats: the names that the session subscribes to, the last accepted version,
// and the last answered nonce.
type repeated struct {
	names          []string // sorted
	version, nonce string
	unsubscribed   bool // a request of the type has unsubscribed from a name
	subscribes     bool // deferred requests subscribe to names that the server does not know yet
}

func (c stateOfTheWorld) request(r request, node *corev3.Node) proto.Message {
	is := c.types[r.of]
	if is == nil {
		is = &repeated{}
		c.types[r.of] = is
	}
	if r.wildcard && len(c.params) > 0 {
		r.subscribe = []string{"*"}
	}
	gone := make(map[string]bool, len(r.unsubscribe))
	for _, name := range r.unsubscribe {
		gone[name] = true
	}
	is.names = slices.DeleteFunc(is.names, func(name string) bool { return gone[name] })
	is.names = append(is.names, r.subscribe...)
	slices.Sort(is.names)
	is.unsubscribed = is.unsubscribed || len(r.unsubscribe) > 0
	if r.deferred {
		is.subscribes = is.subscribes || len(r.subscribe) > 0
		return nil
	}
	if r.nonce != "" {
		is.nonce = r.nonce
		if r.reason == "" {
			is.version = r.version
		}
	}
	m := &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: r.of.URL(), VersionInfo: is.version, ResponseNonce: is.nonce, ErrorDetail: r.detail()}
	if is.unsubscribed && (is.subscribes || len(r.subscribe) > 0) {
		// The client may have dropped a resource, and may now subscribe to it again. A server such as that of
		// go-control-plane does not send the resource again to a client that has the version.
		m.VersionInfo = ""
	}
	is.subscribes = false
	if m.ResourceLocators = locators(is.names, c.params); len(c.params) == 0 {
		m.ResourceNames, m.ResourceLocators = slices.Clone(is.names), nil
	}
	return m
}

func (stateOfTheWorld) message() proto.Message { return &discoveryv3.DiscoveryResponse{} }

// response gives each resource a wrapper with its name. A response with heartbeats alone removes no resource.
func (stateOfTheWorld) response(m proto.Message) (response, error) {
	d := m.(*discoveryv3.DiscoveryResponse)
	r := response{url: d.GetTypeUrl(), nonce: d.GetNonce(), version: d.GetVersionInfo()}
	t := xds.TypeOfURL(r.url)
	if t == nil {
		return r, nil
	}
	held, beats := 0, 0
	for _, body := range d.GetResources() {
		is := &discoveryv3.Resource{Resource: body}
		if body.MessageIs(is) {
			held += decoded.Size(body.GetValue(), is.ProtoReflect().Descriptor())
			if held > grpcdial.MaxDecoded {
				return r, fmt.Errorf("the resources of a %s response would take %d MiB of memory, and %d MiB are allowed", t.API, held>>20, grpcdial.MaxDecoded>>20)
			}
			if w := (&discoveryv3.Resource{}); proto.Unmarshal(body.GetValue(), w) == nil {
				is = w
			}
		}
		switch {
		case is.GetResource() == nil:
			beats++
		case nameOf(t, is) == "":
			is.Name = nameIn(t, is.GetResource())
		}
		r.resources = append(r.resources, is)
	}
	r.whole = t.Asked == xds.AsWhole && (beats == 0 || beats < len(r.resources))
	return r, nil
}

// nameIn returns the name in the bytes of a resource; empty if the bytes are invalid.
func nameIn(t *xds.Type, body *anypb.Any) (name string) {
	message, err := protoregistry.GlobalTypes.FindMessageByName(t.Message)
	if err != nil {
		return ""
	}
	field := message.Descriptor().Fields().ByName(t.Name)
	for data := body.GetValue(); len(data) > 0; {
		number, typ, n := protowire.ConsumeField(data)
		if n < 0 {
			return ""
		}
		if number == field.Number() && typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(data)
			value, _ := protowire.ConsumeBytes(data[tag:n])
			name = string(value)
		}
		data = data[n:]
	}
	return name
}
