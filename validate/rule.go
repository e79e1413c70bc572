package validate

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// Rule judges messages, resources or a Snapshot. It holds no state: its functions may run on
// several goroutines at once.
//
// The functions that it has say what it goes by: Node by one resource alone, Lookup and Resource
// also by what they look up about others, Snapshot by all resources together.
type Rule struct {
	// Code is the rule's name in kebab-case, never used again once retired.
	Code string
	// Family is the name of the folder that the rule stands in; facts.Family gives it.
	Family string
	// Severity of its findings, unless a Finding says otherwise.
	Severity diag.Severity
	// Doc explains the rule: a first line that sums it up, an empty line, then
	// what Envoy does and what would be right, with the source.
	Doc string
	// Checks are what the rule decides, where these are several things: each Finding names one of
	// them, and can be switched off by it. Nil where the rule is one thing in several words.
	Checks []diag.Check
	// Unused says that the rule reports what nothing names. Its findings are listed only if the
	// Snapshot is complete, and all parts of its resources were read.
	Unused bool
	// Messages are the types for which Node or Lookup is called, but for what stands in
	// typed_filter_metadata: Envoy never looks at it. Empty means every message.
	Messages []protoreflect.FullName
	// MessagesOf takes the place of Messages where the types depend on the version of Envoy.
	MessagesOf func(*envoyapi.Version, protoreflect.FullName) bool
	// Wants takes the place of Messages where it depends on what messages of a type can hold. It
	// is asked once about each type.
	Wants func(protoreflect.MessageDescriptor) bool
	// Node judges one message by nothing but the resource that it stands in.
	Node func(*Pass, *xds.Node)
	// Lookup judges one message, and can ask for other resources. A rule has Node or
	// Lookup, not both.
	Lookup func(*LookupPass, *xds.Node)
	// Resource judges one resource by its Facts and by what it looks up, once all resources
	// were walked. It is called again for all resources of a Key that an edit touches.
	Resource func(*LookupPass)
	// Collect are the types of the messages that Snapshot finds in SnapshotPass.Collected,
	// with the same exception.
	Collect []protoreflect.FullName
	// Snapshot judges what stands in several resources, once a Run. It costs what the Snapshot
	// has, not what an edit changes: for what is rare in it.
	Snapshot func(*SnapshotPass)
	// ByName means that Snapshot goes by nothing but the names of resources and Collected:
	// an edit of anything else can't change what it finds.
	ByName bool
	// Idle returns why Envoy does not use yet what a finding is about; empty where Envoy uses it.
	// An error is then a warning, unless the Finding is Eager. It is nil for a rule about what
	// Envoy always uses.
	Idle func(View, *xds.Resource, Finding) string
	// Profiles are those of the clients that the rule is about; empty means all.
	Profiles []Profile
	// Reaches reports whether such a client gets a resource, where there are clients of other
	// profiles as well. It is nil where all clients get all resources that the rule looks at.
	Reaches func(View, *xds.Resource) bool
	// OfVariants means that the rule judges a Snapshot with all variants of its resources, where
	// Options say so. All other rules judge what one client gets.
	OfVariants bool
	// OptIn means that the rule runs only where it is enabled by name.
	OptIn bool
}

// node judges one message.
func (r *Rule) node(p *LookupPass, n *xds.Node) {
	if r.Lookup != nil {
		r.Lookup(p, n)
		return
	}
	r.Node(&p.Pass, n)
}
