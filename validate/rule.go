package validate

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// Rule judges messages, resources or a Snapshot. A Rule holds no state: its functions may run on several
// goroutines at once.
//
// The functions of a Rule tell what the findings depend on. Node depends on one resource alone. Lookup and
// Resource also depend on answers about other resources. Snapshot depends on all resources together.
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
	// Checks are the separate decisions of the rule. Each Finding names one Check, and users can disable a
	// Check alone. Nil if the rule makes one decision.
	Checks []diag.Check
	// Unused means that the rule reports resources without a reference. Such findings are listed only if the
	// Snapshot is complete and all parts of its resources were read.
	Unused bool
	// Messages are the types for which Node or Lookup is called, but for what stands in
	// typed_filter_metadata: Envoy never looks at it. Empty means every message.
	Messages []protoreflect.FullName
	// MessagesOf takes the place of Messages where the types depend on the version of Envoy.
	MessagesOf func(*envoyapi.Version, protoreflect.FullName) bool
	// Wants takes the place of Messages where it depends on what messages of a type can hold. It
	// is asked once about each type.
	Wants func(protoreflect.MessageDescriptor) bool
	// Node judges one message by its resource alone.
	Node func(*Pass, *xds.Node)
	// Lookup judges one message, and can ask for other resources. A rule has Node or
	// Lookup, not both.
	Lookup func(*LookupPass, *xds.Node)
	// Resource judges one resource by its Facts and by lookups, after the walk of all resources. After an edit
	// of a Key, Resource is called again for all resources of the Key.
	Resource func(*LookupPass)
	// Collect lists the types of messages for SnapshotPass.Collected, again without typed_filter_metadata.
	Collect []protoreflect.FullName
	// Snapshot judges several resources together, once a Run. Its cost grows with the Snapshot, not with the
	// edit, so Snapshot should look at rare messages only.
	Snapshot func(*SnapshotPass)
	// ByName means that Snapshot reads only the names of resources and Collected: no other edit can change the
	// findings.
	ByName bool
	// Idle returns why Envoy does not use yet what a finding is about; empty where Envoy uses it.
	// An error is then a warning, unless the Finding is Eager. It is nil for a rule about what
	// Envoy always uses.
	Idle func(View, *xds.Resource, Finding) string
	// Profiles are the profiles of the clients that the rule applies to; empty means all.
	Profiles []Profile
	// Reaches reports whether such a client gets a resource if the Snapshot also has clients of other
	// profiles. A nil Reaches means that every client gets every resource of the rule.
	Reaches func(View, *xds.Resource) bool
	// OfVariants means that the rule judges a Snapshot with all variants of its resources, if Options.Variants
	// is set. Other rules judge the Snapshot of one client.
	OfVariants bool
	// OptIn means that the rule runs only if Options enable the rule by name.
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
