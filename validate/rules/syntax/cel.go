package syntax

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate/cel"
)

// celOptions returns the options of CEL for a version of Envoy and a configuration. The configuration may be nil.
func celOptions(v *envoyapi.Version, c *corev3.CelExpressionConfig) cel.Options {
	o := celAdds(c)
	o.Functions = cel.Functions(v.CELFunctions())
	return o
}

// celAdds returns the options that a configuration enables.
func celAdds(c *corev3.CelExpressionConfig) cel.Options {
	return cel.Options{StringConversion: c.GetEnableStringConversion(), StringFunctions: c.GetEnableStringFunctions()}
}
