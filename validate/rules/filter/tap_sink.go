package filter

import (
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	commontapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/tap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var tapSink = &validate.Rule{
	Code: "tap-sink",
	Doc: `A tap uses a sink that is not supported here.

The admin interface gets traces only of a tap that it has set up itself, by admin_config.
In static_config Envoy refuses streaming_admin ("Specifying admin streaming output
without configuring admin", also where it has an admin interface) and buffered_admin
("Output sink type BufferedAdmin requires that the admin output will be configured via
admin"). streaming_grpc is not implemented: Envoy crashes ("panic: not implemented"), and so it
does with an admin_config where the bootstrap has no admin.`,
	Messages: []protoreflect.FullName{"envoy.config.tap.v3.OutputSink", "envoy.extensions.common.tap.v3.CommonExtensionConfig"},
	Node: func(p *validate.Pass, n *xds.Node) {
		if c, ok := n.Message.(*commontapv3.CommonExtensionConfig); ok {
			if c.GetAdminConfig() != nil && p.BootstrapFacts.NoAdmin() {
				p.Report(validate.Finding{
					Path: n.Path().Field("admin_config"), Message: "admin_config, and the bootstrap has no admin interface: Envoy crashes",
					Help: "give the bootstrap an admin section, or use static_config",
				})
			}
			return
		}
		if facts.Enclosing(n, "envoy.extensions.common.tap.v3.CommonExtensionConfig") == nil {
			return
		}
		impossible := func(field, message, help string) {
			p.Report(validate.Finding{Path: n.Path().Field(field), Message: message, Help: help})
		}
		const useAdmin = "use admin_config with the /tap endpoint, or file_per_tap"
		switch n.Message.(*tapv3.OutputSink).GetOutputSinkType().(type) {
		case *tapv3.OutputSink_StreamingAdmin:
			impossible("streaming_admin", "streaming_admin in a static_config", useAdmin)
		case *tapv3.OutputSink_BufferedAdmin:
			impossible("buffered_admin", "buffered_admin in a static_config", useAdmin)
		case *tapv3.OutputSink_StreamingGrpc:
			impossible("streaming_grpc", "streaming_grpc is not implemented: Envoy crashes", "use file_per_tap")
		}
	},
}
