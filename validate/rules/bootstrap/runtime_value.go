package bootstrap

import (
	"maps"
	"slices"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/validate"
	"xdspub/xds"
)

var runtimeValue = &validate.Rule{
	Code: "runtime-value",
	Doc: `A runtime layer has an invalid value.

A runtime value is a number, a string, a boolean, or a fraction with numerator and
denominator; any other mapping adds a part to the key. Envoy rejects a layer with a list or
null ("Invalid runtime entry value for …").`,
	Messages: []protoreflect.FullName{"envoy.config.bootstrap.v3.RuntimeLayer", "envoy.service.runtime.v3.Runtime"},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *runtimev3.Runtime:
			checkRuntime(p, n.Path().Field("layer"), m.GetLayer())
		case *bootstrapv3.RuntimeLayer:
			checkRuntime(p, n.Path().Field("static_layer"), m.GetStaticLayer())
		}
	},
}

func checkRuntime(p *validate.Pass, path xds.Path, layer *structpb.Struct) {
	for _, key := range slices.Sorted(maps.Keys(layer.GetFields())) {
		at := path.Key(key)
		switch value := layer.GetFields()[key].GetKind().(type) {
		case *structpb.Value_ListValue:
			p.Report(validate.Finding{Path: at, Message: "the runtime value is a list", Help: "write a number, a string, a boolean or a fraction"})
		case *structpb.Value_NullValue:
			p.Report(validate.Finding{Path: at, Message: "the runtime value is null", Help: "remove the key, or set a value"})
		case *structpb.Value_StructValue:
			fields := value.StructValue.GetFields()
			if fields["numerator"] == nil && fields["denominator"] == nil {
				checkRuntime(p, at, value.StructValue)
			}
		}
	}
}
