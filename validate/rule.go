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
	// Family is the name of the rule's folder. facts.Family sets it.
	Family string
	// Severity is the severity of the rule's findings, unless a Finding has another one. The zero value
	// is diag.Error.
	Severity diag.Severity
	// Doc explains the rule: a summary line, an empty line, then what Envoy does and what would be right, with the
	// source.
	Doc string
	// Checks are the separate decisions of the rule. Each Finding names one Check, and users can disable a
	// Check alone. Nil if the rule makes one decision.
	Checks []diag.Check
	// Unused means that the rule reports resources without a reference. Such findings are listed only if the
	// Snapshot is complete and all parts of its resources were read.
	Unused bool
	// Messages are the types of messages for which Node or Lookup is called. With Messages or MessagesOf, the rule
	// does not see messages inside typed_filter_metadata, because Envoy ignores them. If Messages, MessagesOf and
	// Wants are all empty, Node or Lookup is called for every message, even inside typed_filter_metadata.
	Messages []protoreflect.FullName
	// MessagesOf replaces Messages if the types depend on the version of Envoy. Its answer for a type is cached.
	MessagesOf func(*envoyapi.Version, protoreflect.FullName) bool
	// Wants replaces Messages if a rule chooses types by their fields. Its answer for a type is cached.
	Wants func(protoreflect.MessageDescriptor) bool
	// Node judges one message by its resource alone.
	Node func(*Pass, *xds.Node)
	// Lookup judges one message, and can look up other resources. A rule has Node or Lookup, not both.
	Lookup func(*LookupPass, *xds.Node)
	// Resource judges one resource by its Facts and by lookups, after the walk of all resources. After an edit
	// of a Key, Resource is called again for all resources of the Key.
	Resource func(*LookupPass)
	// Collect lists the types of messages for SnapshotPass.Collected. Messages inside typed_filter_metadata are not
	// collected.
	Collect []protoreflect.FullName
	// Snapshot judges several resources together, once in each Run. Its cost grows with the Snapshot and not with
	// the edit, so Snapshot should look at rare messages only.
	Snapshot func(*SnapshotPass)
	// ByName means that Snapshot reads only Collected and the names of resources. Only edits of these run the rule
	// again.
	ByName bool
	// Idle returns the reason why Envoy does not use the faulty part of a resource yet, or "" if Envoy uses the
	// part. With a reason, an error becomes a warning, unless the Finding is Eager. A nil Idle means that Envoy
	// always uses the part.
	Idle func(View, *xds.Resource, Finding) string
	// Profiles are the profiles of the clients that the rule applies to; empty means all.
	Profiles []Profile
	// Reaches reports whether a client with one of Profiles gets a resource. It is called only if the Snapshot also
	// has clients of other profiles. A nil Reaches means that such a client gets every resource.
	Reaches func(View, *xds.Resource) bool
	// OfVariants means that the rule judges a Snapshot with all variants of its resources (Options.Variants). Other
	// rules judge the Snapshot of one client.
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
