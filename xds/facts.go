package xds

import (
	"context"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Facts are the facts of a resource that several stages need. One walk finds all of them; their Nodes are in
// the order of the walk.
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
	// HoldsSecret means that the resource may hold secret content in any field, such as a key
	// inline in a listener, or a credential in a header.
	HoldsSecret bool

	// fieldHoldsSecret means that a field for secrets has content, wherever it stands.
	fieldHoldsSecret bool
	// credentials are the values of headers that let somebody in, by the path of the header.
	credentials map[string]string
	// holdsAny means that the resource has an Any, otherURL that an Any has a type URL that Marshal rewrites.
	holdsAny, otherURL bool
}

// nothing are the shared Facts of most resources of some types, such as endpoint assignments.
var nothing = &Facts{}

// shared returns nothing if the Facts say nothing.
func (f *Facts) shared() *Facts {
	if len(f.Subscriptions)+len(f.ConfigSources)+len(f.FileData)+len(f.Singletons)+len(f.credentials) > 0 ||
		f.SingletonsErr != nil || f.HoldsSecret || f.fieldHoldsSecret || f.holdsAny || f.otherURL {
		return f
	}
	return nothing
}

// note takes down what a node says.
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

// Walk calls the function Walk for the resource's message. The first Walk of a resource finds its
// Facts as well. Where ctx ends, the walk ends and returns the error of ctx.
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

// Edit calls edit for the message of a resource that is in no Snapshot yet, and for every message
// below it, like Walk. edit may change the node's message and returns true where it did; payloads
// that were changed are packed again, a changed TypedStruct as the message it stands for. Edit
// reports whether anything was changed. The same walk finds the Facts of what the resource
// becomes, and packs all its payloads so that Canonical needs no walk.
func (r *Resource) Edit(edit func(*Node) bool) (changed bool) {
	var visited []*Node
	c := r.content()
	w := walker{registry: r.Registry, visit: func(n *Node) bool { visited = append(visited, n); return edit(n) }, pack: true}
	changed = w.walk(&Node{Message: c.message})
	r.Packed = true
	if w.restructured { // the old nodes belong to replaced messages
		c.facts.Store(nil)
		return changed
	}
	f := &Facts{}
	for _, n := range visited { // only now: an edit changes what the messages around it say
		f.note(n)
	}
	c.facts.Store(f.shared())
	return changed
}
