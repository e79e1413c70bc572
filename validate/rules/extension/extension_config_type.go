package extension

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var extensionConfigType = &validate.Rule{
	Code: "extension-config-type",
	Doc: `The filter does not accept the type of its extension config.

config_discovery.type_urls lists the types that a filter accepts. Envoy rejects any other
type, both from ECDS and in default_config ("filter config has type URL … but expect …").
It also rejects a type_urls entry that does not configure a filter of that kind ("no factory
found for a required type URL"; it does not check this for network filters).`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.ExtensionConfigSource"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		source := n.Message.(*corev3.ExtensionConfigSource)
		var listed []string
		for _, url := range source.GetTypeUrls() {
			listed = append(listed, string(xds.NameInURL(url)))
		}
		if len(listed) == 0 {
			return // reported by field-constraint
		}
		checkTypeURLs(&p.Pass, n, source)
		check := func(f validate.Finding, a *anypb.Any) {
			if name := string(xds.PayloadType(a)); name != "" && !slices.Contains(listed, name) {
				f.Message = fmt.Sprintf("type %s is not in type_urls", name)
				f.Help = "type_urls lists " + facts.Quoted(listed)
				p.Report(f)
			}
		}
		if source.GetDefaultConfig() != nil {
			check(validate.Finding{Path: n.Path().Field("default_config")}, source.GetDefaultConfig())
		}
		s, _ := n.Subscription()
		if r := p.Snapshot.Answer(s); r != nil {
			check(validate.Finding{
				Path:    s.NamePath,
				Related: facts.Related(r, "typed_config", "the extension config is here"),
			}, r.Message().(*corev3.TypedExtensionConfig).GetTypedConfig())
		}
	},
}

// checkTypeURLs checks whether the type_urls of a filter by discovery are types of such filters.
func checkTypeURLs(p *validate.Pass, n *xds.Node, source *corev3.ExtensionConfigSource) {
	var category string
	switch n.Field() {
	case "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter.config_discovery":
		category = p.Envoy.CategoryAt(n.Parent, "envoy.filters.http")
	case "envoy.config.listener.v3.ListenerFilter.config_discovery":
		if l, _ := xds.Enclosing[*listenerv3.Listener](n); l.GetAddress().GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP {
			return // reported by listener-filter
		}
		category = "envoy.filters.listener"
	default:
		return
	}
	for i, url := range source.GetTypeUrls() {
		if _, ok := p.Envoy.ExtensionOf(category, xds.NameInURL(url)); !ok && !p.Envoy.Registry().Owns(xds.NameInURL(url)) {
			f := validate.Finding{Path: n.Path().Field("type_urls").Index(i), Message: fmt.Sprintf("type %q does not configure %s", url, kind(category))}
			if !p.Envoy.Registry().Knows(url) {
				suggestType(p.Envoy, &f, url)
			}
			p.Report(f)
		}
	}
}
