package validate

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

var extensionConfigType = &Rule{
	Code:  "extension-config-type",
	Whole: true,
	Doc: `A filter by discovery gets a configuration of a type that it does not list.

config_discovery.type_urls names the types that a filter may get. Envoy refuses
another one, by ECDS as well as in default_config: "filter config has type URL …
but expect …".`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.ExtensionConfigSource"},
	Node: func(p *Pass, n *xds.Node) {
		source := n.Message.(*corev3.ExtensionConfigSource)
		var listed []string
		for _, url := range source.GetTypeUrls() {
			listed = append(listed, string(nameIn(url)))
		}
		if len(listed) == 0 {
			return // field-constraint
		}
		check := func(f Finding, a *anypb.Any) {
			if name := string(typeOf(a)); name != "" && !slices.Contains(listed, name) {
				f.Message = fmt.Sprintf("type %s is not in type_urls", name)
				f.Help = "type_urls lists " + quoted(listed)
				p.Report(f)
			}
		}
		if source.GetDefaultConfig() != nil {
			check(Finding{Path: n.Path().Field("default_config")}, source.GetDefaultConfig())
		}
		s, ok := n.Subscription()
		if !ok || !p.Snapshot.Serves(s) {
			return
		}
		if r := p.Snapshot.Lookup(s.Target, s.Name); r != nil {
			check(Finding{
				Path:    s.NamePath,
				Related: related(r, "typed_config", "this is its configuration"),
			}, r.Message.(*corev3.TypedExtensionConfig).GetTypedConfig())
		}
	},
}
