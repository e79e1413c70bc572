package cluster

import (
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var dropOverloads = &validate.Rule{
	Code: "drop-overloads",
	Doc: `drop_overloads has several categories, or drops more than 100 %.

Envoy supports one category in drop_overloads ("Cluster drop_overloads config has 2
categories. Envoy only support one."), and a drop_percentage of at most 100 %.`,
	Messages: []protoreflect.FullName{"envoy.config.endpoint.v3.ClusterLoadAssignment.Policy"},
	Node: func(p *validate.Pass, n *xds.Node) {
		list := n.Message.(*endpointv3.ClusterLoadAssignment_Policy).GetDropOverloads()
		path := n.Path().Field("drop_overloads")
		if len(list) > 1 {
			p.Report(validate.Finding{
				Path:    path.Index(1),
				Message: fmt.Sprintf("drop_overloads has %d categories, Envoy supports one", len(list)),
				Help:    "keep one category",
			})
			return
		}
		for i, drop := range list {
			share := drop.GetDropPercentage()
			if of, ok := denominators[share.GetDenominator()]; ok && share.GetNumerator() > of {
				p.Report(validate.Finding{
					Path:    path.Index(i).Field("drop_percentage"),
					Message: fmt.Sprintf("drop_percentage is %d of %d, more than 100 %%", share.GetNumerator(), of),
					Help:    "write a fraction of at most 1",
				})
			}
		}
	},
}

var denominators = map[typev3.FractionalPercent_DenominatorType]uint32{
	typev3.FractionalPercent_HUNDRED:      100,
	typev3.FractionalPercent_TEN_THOUSAND: 10_000,
	typev3.FractionalPercent_MILLION:      1_000_000,
}
