package cluster

import (
	"fmt"

	internalupstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/internal_upstream/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var unsupportedMetadataKind = &validate.Rule{
	Code:     "unsupported-metadata-kind",
	Severity: diag.Error,
	Doc: `internal_upstream can't pass on metadata of requests or routes.

The transport socket internal_upstream passes on metadata of a host or a cluster. Envoy
rejects the kinds request and route ("metadata type is not supported").`,
	Messages: []protoreflect.FullName{"envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport.MetadataValueSource"},
	Node: func(p *validate.Pass, n *xds.Node) {
		kind := ""
		switch n.Message.(*internalupstreamv3.InternalUpstreamTransport_MetadataValueSource).GetKind().GetKind().(type) {
		case *metadatav3.MetadataKind_Request_:
			kind = "request"
		case *metadatav3.MetadataKind_Route_:
			kind = "route"
		default:
			return // host and cluster are supported; field-constraint reports a missing kind
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field("kind"),
			Message: fmt.Sprintf("internal_upstream can't pass on metadata of kind %s", kind),
			Help:    "use the kind host or cluster",
		})
	},
}
