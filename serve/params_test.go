package serve_test

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"xdspub/xds/params"
)

// Scripts of TestProtocol write constraints without spaces: {env=prod} has the value, {env} is there,
// {!env} is not; a comma joins by and, | by or.

// constraints reads them, without the first brace.
func constraints(text string) params.Constraints {
	text = strings.TrimSuffix(text, "}")
	var any []params.Constraints
	for _, or := range strings.Split(text, "|") {
		var all []params.Constraints
		for _, and := range strings.Split(or, ",") {
			one, negated := strings.CutPrefix(and, "!")
			key, value, has := strings.Cut(one, "=")
			is := params.Exists(key)
			if has {
				is = params.Value(key, value)
			}
			if negated {
				is = params.Not(is)
			}
			all = append(all, is)
		}
		any = append(any, params.And(all...))
	}
	return params.Or(any...)
}

// constraintsText writes the constraints of a name.
func constraintsText(t *testing.T, name *discoveryv3.ResourceName) string {
	of, err := params.Parse(name.GetDynamicParameterConstraints())
	if err != nil {
		t.Error(err)
	}
	return "{" + strings.NewReplacer(" and ", ",", " or ", "|", "not ", "!").Replace(of.String()) + "}"
}

// variant is a document with constraints.
func variant(t *testing.T, name, of, document string) string {
	text, err := protojson.Marshal(constraints(of).Proto())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: '%s', dynamic_parameter_constraints: %s}, resource: %s}`, name, text, document)
}

// parameters reads env=prod,region=eu}.
func parameters(text string) params.Parameters {
	p := make(params.Parameters)
	for _, one := range strings.Split(strings.TrimSuffix(text, "}"), ",") {
		if key, value, ok := strings.Cut(one, "="); ok {
			p[key] = value
		}
	}
	return p
}

// locator is that of a name.
func locator(name, of string) *discoveryv3.ResourceLocator {
	return &discoveryv3.ResourceLocator{Name: name, DynamicParameters: parameters(of)}
}

// ofMetadata takes the metadata of a node for its dynamic parameters.
func ofMetadata(n *corev3.Node) params.Parameters {
	p := make(params.Parameters)
	for key, value := range n.GetMetadata().GetFields() {
		p[key] = value.GetStringValue()
	}
	return p
}
