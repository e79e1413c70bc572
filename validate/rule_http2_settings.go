package validate

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var http2Settings = &Rule{
	Code: "http2-settings",
	Doc: `A custom SETTINGS parameter of HTTP/2 is none that Envoy sends.

Envoy refuses one that turns server push on, or is SETTINGS_ENABLE_CONNECT_PROTOCOL
("must only be configured through the named field"), one that a named field sets
too ("can not be configured through both named and custom parameters"), and one
that stands twice with different values ("inconsistent HTTP/2 custom SETTINGS
parameter(s)"). The same is true of connection managers and clusters.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Http2ProtocolOptions"},
	Node: func(p *Pass, n *xds.Node) {
		m := n.Message.(*corev3.Http2ProtocolOptions)
		named := map[uint32]string{}
		if m.GetHpackTableSize() != nil {
			named[1] = "hpack_table_size"
		}
		if m.GetMaxConcurrentStreams() != nil {
			named[3] = "max_concurrent_streams"
		}
		if m.GetInitialStreamWindowSize() != nil {
			named[4] = "initial_stream_window_size"
		}
		first := make(map[uint32]uint32)
		for i, parameter := range m.GetCustomSettingsParameters() {
			id, value := parameter.GetIdentifier().GetValue(), parameter.GetValue().GetValue()
			before, twice := first[id]
			f := Finding{Path: n.Path().Field("custom_settings_parameters").Index(i)}
			switch {
			case id == 2 && value == 1:
				f.Message, f.Help = "SETTINGS parameter 2 turns server push on", "Envoy has no server push; leave it out"
			case id == 8:
				f.Message, f.Help = "SETTINGS parameter 8 can't be custom", "set allow_connect"
			case named[id] != "":
				f.Message, f.Help = fmt.Sprintf("SETTINGS parameter %d is what %s sets", id, named[id]), "keep "+named[id]
			case twice && before != value:
				f.Message, f.Help = fmt.Sprintf("SETTINGS parameter %d is %d and %d", id, before, value), "keep one of them"
			default:
				first[id] = value
				continue
			}
			p.Report(f)
		}
	},
}
