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
	Doc: `A tap uses an unsupported sink.

Only a tap with admin_config can send traces to the admin interface. In static_config Envoy
rejects streaming_admin ("Specifying admin streaming output without configuring admin", even
with an admin interface) and buffered_admin ("Output sink type BufferedAdmin requires that
the admin output will be configured via admin"). streaming_grpc is not implemented and
crashes Envoy ("panic: not implemented"). An admin_config also crashes Envoy if the bootstrap
has no admin section.`,
	Messages: []protoreflect.FullName{"envoy.config.tap.v3.OutputSink", "envoy.extensions.common.tap.v3.CommonExtensionConfig"},
	Node: func(p *validate.Pass, n *xds.Node) {
		if c, ok := n.Message.(*commontapv3.CommonExtensionConfig); ok {
			if c.GetAdminConfig() != nil && p.BootstrapFacts.NoAdmin() {
				p.Report(validate.Finding{
					Path: n.Path().Field("admin_config"), Message: "admin_config needs an admin interface, and the bootstrap has none: Envoy crashes",
					Help: "add an admin section to the bootstrap, or use static_config",
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
			impossible("streaming_admin", "static_config does not support streaming_admin", useAdmin)
		case *tapv3.OutputSink_BufferedAdmin:
			impossible("buffered_admin", "static_config does not support buffered_admin", useAdmin)
		case *tapv3.OutputSink_StreamingGrpc:
			impossible("streaming_grpc", "streaming_grpc is not implemented: Envoy crashes", "use file_per_tap")
		}
	},
}
