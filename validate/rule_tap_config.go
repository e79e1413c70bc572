package validate

import (
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var tapConfig = &Rule{
	Code: "tap-config",
	Doc: `A tap that Envoy can't set up, or that ends it.

A streaming_grpc sink is not implemented: Envoy ends with "panic: not implemented"
when it takes the resource. The sinks streaming_admin and buffered_admin belong to
a tap that is set up over the admin interface, by admin_config: in a static_config
they are refused ("Specifying admin streaming output without configuring admin"),
as is a tap without match ("Neither match nor match_config is set").`,
	Messages: []protoreflect.FullName{"envoy.config.tap.v3.TapConfig", "envoy.config.tap.v3.OutputSink"},
	Node: func(p *Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *tapv3.TapConfig:
			if m.GetMatch() == nil && m.GetMatchConfig() == nil {
				p.Report(Finding{Path: n.Path(), Message: "tap has no match", Help: "match: {any_match: true} taps everything"})
			}
		case *tapv3.OutputSink:
			switch m.GetOutputSinkType().(type) {
			case *tapv3.OutputSink_StreamingGrpc:
				p.Report(Finding{
					Path:    n.Path().Field("streaming_grpc"),
					Message: "a streaming_grpc sink is not implemented: Envoy ends when it takes it",
					Help:    "use file_per_tap, or admin_config and the admin interface",
				})
			case *tapv3.OutputSink_StreamingAdmin, *tapv3.OutputSink_BufferedAdmin:
				p.Report(Finding{
					Path:    n.Path(),
					Message: "the sink needs a tap that is set up over the admin interface",
					Help:    "use admin_config instead of static_config, or a file_per_tap sink",
				})
			}
		}
	},
}
