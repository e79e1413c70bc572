package importer

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

// redacted reports the secrets that Envoy does not show, in the bootstrap and in imported resources.
func (r *reading) redacted() {
	for _, path := range r.dump.Redacted(r.whole.path, r.whole.text) {
		r.report(codeRedacted, part{path: path}, "Envoy shows no secrets, and the bootstrap had one here", redactedHelp)
	}
	for _, i := range r.items {
		for _, path := range r.dump.Redacted(i.source.path, i.source.text) {
			r.report(codeRedacted, part{path: path}, fmt.Sprintf("Envoy shows no secrets, and %s had one here", i.Key), redactedHelp)
		}
	}
}

const redactedHelp = "import the files that Envoy was started with, or have Envoy get the secret by SDS from a file, which import leaves as it is"

// envoysOwn are the fields of a node that Envoy sets itself.
var envoysOwn = []protoreflect.Name{"user_agent_name", "user_agent_version", "user_agent_build_version", "extensions", "client_features"}

// cleanBootstrap removes from the bootstrap the fields that Envoy adds, and the subscriptions that the source tree
// replaces. It reports each removal.
func (d *draft) cleanBootstrap() {
	for _, n := range d.bootstrap.Facts().ConfigSources {
		if source := n.Message.(*corev3.ConfigSource); xds.FromSnapshot(source) && !strings.HasPrefix(string(n.Path()), "dynamic_resources.") {
			d.warn(d.bootstrap, n.Path(), fmt.Sprintf("%s asks an ADS server, and the bootstrap has no ADS server any more: the resources of that server are not imported", n.Path()),
				"write the resources into the source tree, or remove this config source; the values of a runtime layer are in /runtime")
		}
	}
	b := proto.CloneOf(d.message())
	dynamic := b.GetDynamicResources().ProtoReflect()
	for _, field := range present(dynamic) {
		d.leaveOut(dynamic, field)
	}
	b.DynamicResources = nil
	d.document.drop("dynamic_resources")
	node := b.GetNode().ProtoReflect()
	var own []string
	for _, field := range present(node) {
		if slices.Contains(envoysOwn, field) {
			node.Clear(node.Descriptor().Fields().ByName(field))
			own = append(own, string(field))
		}
	}
	if len(own) > 0 {
		f := d.bootstrap.Diagnostic(codeChange.Name, xds.Path("node").Field(own[0]), "left out of node: "+strings.Join(own, ", ")+", which Envoy sets itself")
		f.Severity = diag.Info
		d.found.Add(f)
	}
	d.bootstrap = d.bootstrap.With(b)
}

// leaveOut reports that the imported bootstrap does not have a field of dynamic_resources.
func (d *draft) leaveOut(dynamic protoreflect.Message, field protoreflect.Name) {
	why, help := "the source tree replaces it", ""
	if m, ok := dynamic.Get(dynamic.Descriptor().Fields().ByName(field)).Interface().(protoreflect.Message); ok && d.remote != "" {
		if source, ok := m.Interface().(*corev3.ConfigSource); ok && xds.PathOf(source) != "" {
			why, help = sourceOf(source)+" is not imported", "copy the resources of that file into the source tree"
		}
	}
	d.warn(d.bootstrap, xds.Path("dynamic_resources").Field(string(field)), fmt.Sprintf("dynamic_resources.%s is left out: %s", field, why), help)
}

// present returns the names of the fields of a message that are set, in the order of the API.
func present(m protoreflect.Message) (names []protoreflect.Name) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if m.IsValid() && m.Has(fields.Get(i)) {
			names = append(names, fields.Get(i).Name())
		}
	}
	return names
}
