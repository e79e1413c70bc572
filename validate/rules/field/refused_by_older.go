package field

import (
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var refusedByOlder = &validate.Rule{
	Code: "refused-by-older",
	Doc: `The Envoy of --envoy-version refuses what newer ones take.

A field may be empty in the API of today, and had to be set before: that Envoy refuses the resource
("TokenBucketValidationError.MaxTokens: value must be greater than 0"). If an endpoint of a STATIC
or EDS cluster has additional_addresses, Envoy before 1.38 takes IP addresses only, for the first
one as well ("additional_addresses must be IP addresses."). If versions are mixed, the oldest one
decides.

A field or type unknown to that Envoy is newer-than-envoy.`,
	Checks: []diag.Check{
		{Name: "additional-address", Summary: "An endpoint with additional addresses has a pipe or an internal listener among them."},
		{Name: "empty-field", Summary: "A field is empty although older releases require a value."},
	},
	MessagesOf: func(v *envoyapi.Version, message protoreflect.FullName) bool {
		_, onlyIP := v.AdditionalAddressesNeedIP()
		return v.RequiresIn(message) || onlyIP && message == "envoy.config.endpoint.v3.Endpoint"
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if e, ok := n.Message.(*endpointv3.Endpoint); ok {
			checkAdditionalAddresses(p, n, e)
			return
		}
		checkEmptyFields(p, n)
	},
}

func checkAdditionalAddresses(p *validate.Pass, n *xds.Node, e *endpointv3.Endpoint) {
	since, _ := p.Envoy.AdditionalAddressesNeedIP()
	if len(e.GetAdditionalAddresses()) == 0 || facts.UseOfEndpoints(p.Envoy, n) != facts.EndpointsLiteral {
		return
	}
	report := func(path xds.Path) {
		p.Report(validate.Finding{
			Check: "additional-address", Path: path,
			Message: fmt.Sprintf("it is no IP address, and the endpoint has additional_addresses: Envoy %s refuses that, %s is "+
				"the first to take it", p.Envoy.Before(since), since),
			Help: "write an IP address, or raise --envoy-version once no older Envoy is left",
		})
	}
	if facts.NotIP(e.GetAddress()) {
		report(n.Path().Field("address"))
	}
	for i, additional := range e.GetAdditionalAddresses() {
		if facts.NotIP(additional.GetAddress()) {
			report(n.Path().Field("additional_addresses").Index(i))
		}
	}
}

func checkEmptyFields(p *validate.Pass, n *xds.Node) {
	top := n // top becomes the message that Envoy unpacks and checks by itself
	for top.Parent != nil && !isPacked(top) {
		top = top.Parent
	}
	if facts.IsUnread(top) || p.Envoy.IsReadAsAnother(top) || !p.Envoy.IsPickedPolicy(top) {
		return
	}
	m := n.Message.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		since, requires := p.Envoy.Requires(fd.FullName())
		if !requires || m.Has(fd) {
			continue
		}
		p.Report(validate.Finding{
			Check: "empty-field", Path: n.Path().Field(string(fd.Name())), Warning: isUnchecked(p.Envoy, top),
			Message: fmt.Sprintf("%s is empty: Envoy %s refuses that, %s is the first to take it", fd.Name(), p.Envoy.Before(since), since),
			Help:    "set it, or raise --envoy-version once no older Envoy is left",
		})
	}
}
