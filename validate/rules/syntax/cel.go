package syntax

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate/cel"
)

// celOptions returns a release's options for expressions with a configuration, which may be nil.
func celOptions(v *envoyapi.Version, c *corev3.CelExpressionConfig) cel.Options {
	o := celAdds(c)
	o.Functions = cel.Functions(v.CELFunctions())
	return o
}

// celAdds returns what a configuration adds to the language.
func celAdds(c *corev3.CelExpressionConfig) cel.Options {
	return cel.Options{StringConversion: c.GetEnableStringConversion(), StringFunctions: c.GetEnableStringFunctions()}
}
