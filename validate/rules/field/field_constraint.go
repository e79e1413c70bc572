package field

import (
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var fieldConstraint = &validate.Rule{
	Code: "field-constraint",
	Doc: `A field violates a constraint of the Envoy API.

The API's proto files define which fields are required and which values they accept
(protoc-gen-validate). Envoy checks these constraints when it unpacks a message. It rejects
the whole file for a violation in a resource, and its log often does not name the field
("goo.gle/debugonly").

A constraint newer than all Envoys of --envoy-version causes a warning, which names the release.
Envoy does not check some messages, such as most policies in a load_balancing_policy: a
violation there is a warning. A hash_policy there without a policy specifier crashes it.
This rule does not check config sources that xdspub replaces.`,
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		if n.Parent != nil && !isPacked(n) {
			return // ValidateAll of the message around it judges this message
		}
		err := xds.Constraints(n.Message)
		// Envoy does not check the constraints of the SPIFFE validator.
		if err == nil || facts.IsUnread(n) || p.Envoy.IsReadAsAnother(n) || !p.Envoy.IsPickedPolicy(n) ||
			facts.Inside(n, "envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig") {
			return
		}
		warning := isUnchecked(p.Envoy, n)
		bound := boundSources(p)
		for _, v := range facts.Violations(err, n.Message.ProtoReflect(), n.Path()) {
			// name-missing reports a missing name.
			missingName := p.Resource.Name == "" && v.Path == xds.Path(p.Resource.Type.Name)
			if !v.Elsewhere && !missingName && !under(v.Path, bound) && !ofPickingPolicy(n, v.Path) {
				since, later := p.Envoy.ConstrainedLater(v.Field)
				if later {
					v.Message += "; Envoy before " + since + " takes it"
				}
				p.Report(validate.Finding{Path: v.Path, Message: v.Message, Help: v.Help, Warning: later || warning && !checkedAnyway(p.Envoy, n, v.Path)})
			}
		}
	},
}

// boundSources returns the paths of the config sources that mean this Snapshot. xdspub replaces them when it
// publishes.
func boundSources(p *validate.LookupPass) (paths []xds.Path) {
	for _, s := range p.Resource.Facts().Subscriptions {
		if p.Snapshot.Serves(s) {
			paths = append(paths, s.SourcePath)
		}
	}
	return paths
}
