package syntax

import (
	"fmt"

	celexpr "cel.dev/expr"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	celfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	celdescriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rate_limit_descriptors/expr/v3"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/cel"
	"xdspub/xds"
)

var badCELExpression = &validate.Rule{
	Code:     "bad-cel-expression",
	Severity: diag.Error,
	Doc: `Envoy can't parse or compile a CEL expression.

Envoy parses the expressions of access log filters, rate limit descriptors and ext_proc
attributes when it loads them ("Not able to parse expression"). It compiles these and the ones
that are parsed already, in RBAC conditions and CEL matchers ("failed to create an expression").
Envoy's CEL has no comprehensions (all, exists, exists_one, filter, map) and no extension
functions except re.extract, re.capture and re.captureN. string() and the string functions need
a cel_config. Expressions may be nested 32 deep. A constant regular expression in matches(…) is
compiled too. The OpenTelemetry sampler does not read cel_expr_string ("CEL expression not
set"). In an RBAC policy Envoy compiles condition, not checked_condition.

bad-format-string checks expressions in %CEL(…)%.`,
	Messages: []protoreflect.FullName{
		"envoy.config.rbac.v3.Policy",
		"envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
		"envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
		"envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor",
		"xds.type.v3.CelExpression",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		report := func(path xds.Path, err error) {
			if err != nil {
				p.Report(validate.Finding{
					Path: n.Path().Join(path), Message: fmt.Sprintf("invalid CEL expression: %v", err),
					Help: "see https://www.envoyproxy.io/docs/envoy/v" + p.Envoy.Name + "/intro/arch_overview/advanced/attributes",
				})
			}
		}
		switch m := n.Message.(type) {
		case *rbacv3.Policy:
			if m.GetCondition() != nil {
				report("condition", cel.CheckExpr(m.GetCondition(), celOptions(p.Envoy, m.GetCelConfig())))
			}
		case *celfilterv3.ExpressionFilter:
			report("expression", cel.Check(m.GetExpression(), celOptions(p.Envoy, m.GetCelConfig())))
		case *extprocv3.ExternalProcessor:
			for i, text := range m.GetRequestAttributes() {
				report(xds.Path("request_attributes").Index(i), cel.Check(text, celOptions(p.Envoy, nil)))
			}
			for i, text := range m.GetResponseAttributes() {
				report(xds.Path("response_attributes").Index(i), cel.Check(text, celOptions(p.Envoy, nil)))
			}
		case *celdescriptorv3.Descriptor:
			checkDescriptor(p.Envoy, m, report)
		case *xdstypev3.CelExpression:
			if path, expr := parsedExpression(m); path != "" {
				report(path, cel.CheckExpr(expr, celOptions(p.Envoy, nil)))
			} else if n.Parent.Name() != "xds.type.matcher.v3.CelMatcher" { // otherwise reported by malformed-matcher
				p.Report(validate.Finding{
					Path: n.Path(), Message: "the CEL expression is missing: Envoy does not read cel_expr_string here",
					Help: "parse the expression, and write the result in cel_expr_parsed or cel_expr_checked",
				})
			}
		}
	},
}

func checkDescriptor(v *envoyapi.Version, m *celdescriptorv3.Descriptor, report func(xds.Path, error)) {
	switch expr := m.GetExprSpecifier().(type) {
	case *celdescriptorv3.Descriptor_Text:
		if expr.Text != "" { // otherwise reported by field-constraint
			report("text", cel.Check(expr.Text, celOptions(v, nil)))
		}
	case *celdescriptorv3.Descriptor_Parsed:
		report("parsed", cel.CheckExpr(expr.Parsed, celOptions(v, nil)))
	default:
		report("", fmt.Errorf("neither text nor parsed is set"))
	}
}

// parsedExpression returns the expression of m that Envoy uses, and the field of the expression. The field is "" if
// m has no expression that Envoy reads.
func parsedExpression(m *xdstypev3.CelExpression) (xds.Path, *exprpb.Expr) {
	switch {
	case m.GetCelExprChecked() != nil:
		return "cel_expr_checked", older(m.GetCelExprChecked().GetExpr())
	case m.GetCelExprParsed() != nil:
		return "cel_expr_parsed", older(m.GetCelExprParsed().GetExpr())
	case m.GetCheckedExpr() != nil:
		return "checked_expr", m.GetCheckedExpr().GetExpr()
	case m.GetParsedExpr() != nil:
		return "parsed_expr", m.GetParsedExpr().GetExpr()
	}
	return "", nil
}

// older returns an expression as a message of the older API. Both messages have the same encoding.
func older(e *celexpr.Expr) *exprpb.Expr {
	var same exprpb.Expr
	b, err := proto.Marshal(e)
	if err != nil || proto.Unmarshal(b, &same) != nil {
		return nil
	}
	return &same
}
