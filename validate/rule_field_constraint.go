package validate

import (
	"strings"

	"xdspub/xds"
)

var fieldConstraint = &Rule{
	Code: "field-constraint",
	Doc: `A field breaks a constraint that the Envoy API sets on it.

The API's proto files say which fields are required and which values they may
have (protoc-gen-validate). Envoy checks them when it unpacks a message, refuses
the whole file for a fault in a resource itself, and its log does not say which
field it was ("goo.gle/debugonly").

Some configurations are not held against them, such as most policies in a
load_balancing_policy, and take what they get: a warning; but a hash_policy of theirs
without its kind crashes Envoy. A config source that xdspub replaces is not judged.`,
	Lookup: func(p *LookupPass, n *xds.Node) {
		if n.Parent != nil && !isPacked(n) {
			return // judged with the message around it
		}
		m, ok := n.Message.(interface{ ValidateAll() error })
		if !ok {
			return
		}
		err := m.ValidateAll()
		// Envoy unpacks the SPIFFE validator without checks.
		if err == nil || unread(n) || readAsAnother(n) || !isPicked(n) || inside(n, "envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig") {
			return
		}
		warning := isUnchecked(n)
		bound := boundSources(p)
		for _, v := range violations(err, n.Message.ProtoReflect(), n.Path()) {
			// name-missing has that one.
			missingName := p.Resource.Name == "" && v.path == xds.Path(p.Resource.Type.Name)
			if !v.elsewhere && !missingName && !under(v.path, bound) && !ofPickingPolicy(n, v.path) {
				p.Report(Finding{Path: v.path, Message: v.message, Help: v.help, Warning: warning && !checkedAnyway(n, v.path)})
			}
		}
	},
}

// isPacked tells whether the node stands in an Any, or a struct that is read as it.
func isPacked(n *xds.Node) bool {
	switch n.Parent.Name() {
	case "google.protobuf.Any", "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct":
		return true
	case "google.protobuf.Struct":
		return n.Parent.OptionsType() != ""
	}
	return false
}

// boundSources are the config sources of the resource that are replaced.
func boundSources(p *LookupPass) (paths []xds.Path) {
	for _, s := range p.Resource.Facts().Subscriptions {
		if p.Snapshot.Serves(s) {
			paths = append(paths, s.SourcePath)
		}
	}
	return paths
}

// under tells whether path is one of those or stands below one.
func under(path xds.Path, tops []xds.Path) bool {
	for _, top := range tops {
		if rest, ok := strings.CutPrefix(string(path), string(top)); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}
