package reference

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var crossedOwners = &validate.Rule{
	Code:  "crossed-owners",
	OptIn: true,
	Doc: `A reference leads into the folder of another owner (off by default).

The setting owners names the folders that stand for themselves, such as the folders of teams, and
turns the rule on. While a folder has errors, the rest of the source tree is published with the
folder as it was last valid. So a resource of an owner may only refer to resources of the same owner
and to shared ones, and a shared resource only to shared ones. Otherwise one half of a reference
would be of today, and the other half of another day.

A shared resource may ask for all resources of a group, such as the virtual hosts of VHDS and the
scopes of SRDS, to which each owner adds its own.`,
	Checks: []diag.Check{
		{Name: "foreign-owner", Summary: "A resource of an owner refers to a resource of another owner."},
		{Name: "shared-to-owner", Summary: "A shared resource refers to a resource of an owner."},
	},
	Wants: func(md protoreflect.MessageDescriptor) bool { return xds.Refers(md.FullName()) },
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		for _, use := range n.Uses() {
			if findsByName(n, use) && !n.InMetadata() {
				checkOwner(p, use.Path(), p.Snapshot.Lookup(use.Target, use.Name))
			}
		}
	},
	Resource: func(p *validate.LookupPass) {
		for _, s := range p.Resource.Facts().Subscriptions {
			if s.Name != "" && s.Target.Group == nil && p.Snapshot.Serves(s) {
				checkOwner(p, s.NamePath, p.Snapshot.Lookup(s.Target, s.Name))
			}
		}
		checkGroup(p)
	},
}

// findsByName reports whether a name stands for a resource of the Snapshot, without a Subscription.
func findsByName(n *xds.Node, use xds.Use) bool {
	switch use.Kind {
	case xds.ClusterName, xds.ListenerName:
		return true
	case xds.Subscribed:
		_, subscribes := n.Subscription()
		return !subscribes && (use.Target == xds.Secret || use.Target == xds.RouteConfiguration)
	}
	return false
}

// checkOwner reports a reference of the judged resource at path to a resource of another owner.
func checkOwner(p *validate.LookupPass, path xds.Path, target *xds.Resource) {
	if target == nil || target.Owner == "" || target.Owner == p.Resource.Owner {
		return
	}
	f := validate.Finding{Check: "foreign-owner", Path: path, Help: "move one of the two into the folder of the other, or the " + target.Type.Noun + " into a shared folder"}
	f.Message = fmt.Sprintf("%s belongs to %s, and the resource that refers to it to %s", target.Key, target.Owner, p.Resource.Owner)
	if p.Resource.Owner == "" {
		f.Check = "shared-to-owner"
		f.Message = fmt.Sprintf("%s belongs to %s, and the resource that refers to it is shared", target.Key, target.Owner)
	}
	p.Report(f)
}

// groups maps the name of a group, with its type, to the resources that ask for all resources of the group.
var groups = validate.NewIndex(nil, func(s *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, sub := range r.Facts().Subscriptions {
		if (sub.Target.Group != nil || sub.Target == xds.ScopedRoutes) && s.Serves(sub) {
			add(askedFor(sub.Target, sub.Name), r)
		}
	}
})

// checkGroup reports that the judged resource belongs to a group that another owner asks for.
func checkGroup(p *validate.LookupPass) {
	r, name := p.Resource, ""
	switch {
	case r.Owner == "" || r.Type.Group == nil && r.Type != xds.ScopedRoutes:
		return
	case r.Type.Group != nil:
		name = r.Type.Group(r.Name)
	}
	for _, asks := range groups.Lookup(p.Snapshot, askedFor(r.Type, name)) {
		if asks.Owner == "" || asks.Owner == r.Owner {
			continue
		}
		p.Report(validate.Finding{
			Check: "foreign-owner", Path: xds.Path(r.Type.Name),
			Message: fmt.Sprintf("%s of %s asks for %s of %s", asks.Key, asks.Owner, r.Key, r.Owner),
			Help:    "move one of the two into the folder of the other, or " + asks.Key.String() + " into a shared folder",
		})
		return
	}
}
