package transition

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/xds"
)

var extensionTypeChanged = &Rule{
	Code: "extension-type-changed",
	Doc: `An extension config changes to a type that the running filter rejects.

xdspub publishes extension configs before listeners, so running filters get them first, and keep
them while they drain. Envoy rejects a type that is not in type_urls of a running
filter ("filter config has type URL … but expect …"), for every kind of filter. It also rejects a
terminal filter if the running one is not the last of its chain, and another filter if it is
("non-terminal filter … is the last filter"). A new listener with this filter then has no
configuration for it, and answers 500 or closes connections.`,
	Run: func(p *Pass) error {
		subscribers, err := p.subscribers(xds.ExtensionConfig)
		if err != nil || len(subscribers) == 0 {
			return err
		}
		moved := p.lastFilters()
		reported := make(map[*xds.Resource]bool)
		for _, s := range subscribers {
			r := p.New.Lookup(xds.ExtensionConfig, s.Name)
			if r == nil || reported[r] {
				continue
			}
			config := xds.Unpack(r.Message().(*corev3.TypedExtensionConfig).GetTypedConfig())
			if config == nil {
				continue
			}
			name := string(config.ProtoReflect().Descriptor().FullName())
			f := Finding{
				Resource: r, Path: "typed_config",
				Help: "give the extension config and the filter that uses it a new name",
			}
			var listed []string
			for _, url := range s.Node.Message.(*corev3.ExtensionConfigSource).GetTypeUrls() {
				listed = append(listed, url[strings.LastIndexByte(url, '/')+1:])
			}
			last, hasPlace := isLast(s.Node)
			becomesLast, stays := moved[s.Name]
			switch {
			case !slices.Contains(listed, name):
				f.Message = fmt.Sprintf("running %s has filter %q of type %s: Envoy would reject "+
					"another type", s.Resource.Key, s.Name, strings.Join(listed, " or "))
			case hasPlace && stays && last != becomesLast:
				f.Message = fmt.Sprintf("filter %q of running %s becomes the last of its chain, or is no longer the last: Envoy "+
					"would reject its configuration", s.Name, s.Resource.Key)
			default:
				continue
			}
			reported[r] = true
			p.Report(f)
		}
		return nil
	},
}

// lastFilters maps the name of each filter that the new Snapshot has by discovery to true if the filter is the last
// of its chain. It leaves out filters in chains without a terminal filter.
func (p *Pass) lastFilters() map[string]bool {
	filters := make(map[string]bool)
	for _, t := range xds.Entrypoints {
		for _, r := range p.New.Of(t) {
			if !r.AsksFor(xds.ExtensionConfig) {
				continue
			}
			for _, s := range r.Facts().Subscriptions {
				last, hasPlace := isLast(s.Node)
				if hasPlace && s.Target == xds.ExtensionConfig && p.New.Serves(s) {
					filters[s.Name] = last
				}
			}
		}
	}
	return filters
}

// isLast reports whether a filter with the config source at n is the last of its chain. hasPlace is false if the
// chain does not end with a terminal filter.
func isLast(n *xds.Node) (last, hasPlace bool) {
	if n.Parent == nil || !n.Parent.InList() {
		return false, false
	}
	switch n.Parent.Message.(type) {
	case *hcmv3.HttpFilter, *listenerv3.Filter:
		around := n.Parent.Parent.Message.ProtoReflect()
		list := around.Get(around.Descriptor().Fields().ByName(n.Parent.Field().Name())).List()
		return list.Get(list.Len()-1).Message().Interface() == n.Parent.Message, true
	}
	return false, false
}
