package field

import (
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var fieldConstraint = &validate.Rule{
	Code: "field-constraint",
	Doc: `A field violates a constraint of the Envoy API.

The API's proto files say which fields are required and which values they may
have (protoc-gen-validate). Envoy checks them when it unpacks a message, refuses
the whole file for a fault in a resource itself, and its log does not say which
field it was ("goo.gle/debugonly").

Some configurations are not held against them, such as most policies in a
load_balancing_policy, and take what they get: a warning; but a hash_policy of theirs
without its kind crashes Envoy. A config source that xdspub replaces is not judged.`,
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		if n.Parent != nil && !isPacked(n) {
			return // judged with the message around it
		}
		err := xds.Constraints(n.Message)
		// Envoy unpacks the SPIFFE validator without checks.
		if err == nil || facts.IsUnread(n) || p.Envoy.IsReadAsAnother(n) || !p.Envoy.IsPickedPolicy(n) || facts.Inside(n, "envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig") {
			return
		}
		warning := isUnchecked(p.Envoy, n)
		bound := boundSources(p)
		for _, v := range facts.Violations(err, n.Message.ProtoReflect(), n.Path()) {
			// name-missing has that one.
			missingName := p.Resource.Name == "" && v.Path == xds.Path(p.Resource.Type.Name)
			if !v.Elsewhere && !missingName && !under(v.Path, bound) && !ofPickingPolicy(n, v.Path) {
				p.Report(validate.Finding{Path: v.Path, Message: v.Message, Help: v.Help, Warning: warning && !checkedAnyway(p.Envoy, n, v.Path)})
			}
		}
	},
}

// boundSources are the config sources of the resource that are replaced.
func boundSources(p *validate.LookupPass) (paths []xds.Path) {
	for _, s := range p.Resource.Facts().Subscriptions {
		if p.Snapshot.Serves(s) {
			paths = append(paths, s.SourcePath)
		}
	}
	return paths
}
