package xds

import (
	"context"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Facts are the facts of a resource that several stages need. One walk finds all facts. Each list is in the order
// of the walk.
type Facts struct {
	// Subscriptions are the messages that subscribe to resources at a config source.
	Subscriptions []Subscription
	// ConfigSources are all config sources in the resource, with or without a Subscription.
	ConfigSources []*Node
	// FileData are the data sources that name a file, or a directory to watch.
	FileData []*Node
	// Singletons are the uses of objects that the whole Envoy shares, except in metadata, which Envoy ignores.
	// SingletonsErr is the reason if a use can't be compared.
	Singletons    []SingletonUse
	SingletonsErr error
	// HoldsSecret means that the resource may hold secret content: a field for secrets has content, such as a key
	// inline in a listener, or a header has a credential, or a payload can't be read.
	HoldsSecret bool
	// HasEndpoints means that the resource lists endpoints.
	HasEndpoints bool

	// fieldHoldsSecret is HoldsSecret without the credentials of headers.
	fieldHoldsSecret bool
	// credentials are the values of the headers in credentialHeaders, by the path of the HeaderValue.
	credentials map[string]string
	// holdsAny means that the message contains an Any. otherURL means that Marshal rewrites the type URL of an Any.
	holdsAny, otherURL bool
}

// nothing and onlyEndpoints are the shared Facts of most resources of some types, such as endpoint assignments.
var nothing, onlyEndpoints = &Facts{}, &Facts{HasEndpoints: true}

// shared returns nothing or onlyEndpoints if the Facts say no more.
func (f *Facts) shared() *Facts {
	if len(f.Subscriptions)+len(f.ConfigSources)+len(f.FileData)+len(f.Singletons)+len(f.credentials) > 0 ||
		f.SingletonsErr != nil || f.HoldsSecret || f.fieldHoldsSecret || f.holdsAny || f.otherURL {
		return f
	}
	if f.HasEndpoints {
		return onlyEndpoints
	}
	return nothing
}

// note adds the facts of a node.
func (f *Facts) note(n *Node) {
	f.fieldHoldsSecret = f.fieldHoldsSecret || holdsSecret(n)
	f.HoldsSecret = f.HoldsSecret || f.fieldHoldsSecret
	switch m := n.Message.(type) {
	case *corev3.ConfigSource:
		f.ConfigSources = append(f.ConfigSources, n)
	case *corev3.DataSource:
		if m.GetFilename() != "" || m.GetWatchedDirectory() != nil {
			f.FileData = append(f.FileData, n)
		}
	case *endpointv3.LbEndpoint:
		f.HasEndpoints = true
	case *anypb.Any:
		f.holdsAny = true
		f.otherURL = f.otherURL || m.GetTypeUrl() != "" && n.Err == nil && hasOtherURL(m)
	case *corev3.HeaderValue:
		if m.GetValue() != "" && credentialHeaders[strings.ToLower(m.GetKey())] {
			if f.credentials == nil {
				f.credentials = make(map[string]string)
			}
			f.credentials[string(n.Path())] = m.GetValue()
			f.HoldsSecret = f.HoldsSecret || holdsCredential(m.GetValue())
		}
	}
	if s, ok := n.Subscription(); ok {
		f.Subscriptions = append(f.Subscriptions, s)
	}
	if shared, err := n.Singletons(); (err != nil || len(shared) > 0) && !n.InMetadata() {
		f.Singletons = append(f.Singletons, shared...)
		if f.SingletonsErr == nil {
			f.SingletonsErr = err
		}
	}
}

// Walk walks the resource's message as Registry.Walk does. The first complete Walk also finds the Facts of the
// resource. If ctx ends, Walk ends and returns the error of ctx.
func (r *Resource) Walk(ctx context.Context, visit func(*Node)) error {
	return r.content().walk(ctx, r.Registry, visit)
}

func (c *content) walk(ctx context.Context, registry *Registry, visit func(*Node)) error {
	f, each := c.facts.Load(), visit
	if f == nil {
		f = &Facts{}
		each = func(n *Node) { f.note(n); visit(n) }
	}
	w := walker{registry: registry, visit: func(n *Node) bool { each(n); return false }, ctx: ctx}
	w.walk(&Node{Message: c.message})
	if w.ended == nil {
		c.facts.Store(f.shared())
	}
	return w.ended
}

// Edit is a Walk in which edit may change the message of each node. edit returns true if it changed the message.
// Edit packs changed payloads again; a changed TypedStruct becomes the message that it stands for. changed reports
// whether edit changed a message. The resource must not be in a Snapshot yet.
//
// The same walk finds the Facts of the edited resource, unless a TypedStruct was changed. Edit also packs all
// payloads, which saves Canonical a walk.
func (r *Resource) Edit(edit func(*Node) bool) (changed bool) {
	var visited []*Node
	c := r.content()
	w := walker{registry: r.Registry, visit: func(n *Node) bool { visited = append(visited, n); return edit(n) }, pack: true}
	changed = w.walk(&Node{Message: c.message})
	r.Packed = true
	if w.restructured { // some of the visited nodes have messages that are no longer in the resource
		c.facts.Store(nil)
		return changed
	}
	f := &Facts{}
	for _, n := range visited { // after the walk, since an edit of a message can change the facts of messages around it
		f.note(n)
	}
	c.facts.Store(f.shared())
	return changed
}
