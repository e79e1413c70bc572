package matcher

import (
	"fmt"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var malformedMatcher = &validate.Rule{
	Code: "malformed-matcher",
	Doc: `A matcher is incomplete or has an invalid value.

An entry of IPMatcher or ServerNameMatcher without on_match crashes Envoy. A
ServerNameMatcher accepts *, *.example.com and names without *. Envoy rejects every other
wildcard ("Invalid wildcard domain format"), an empty name, and a name that is listed twice,
in one entry or in two ("Duplicate domain in ServerNameMatcher").

A CelMatcher needs an expression that is parsed or checked already: cel_expr_string counts
as missing ("CEL expression not set").

Envoy accepts an empty matcher, which matches nothing (a warning).`,
	Checks: []diag.Check{
		{Name: "cel-expression", Summary: "CelMatcher has no expression in a field that Envoy reads."},
		{Name: "domain", Summary: "A domain is empty, listed twice, or has an invalid wildcard."},
		{Name: "empty-matcher", Summary: "A matcher is empty and matches nothing."},
		{Name: "no-on-match", Summary: "An entry without on_match crashes Envoy."},
	},
	Messages: []protoreflect.FullName{
		"xds.type.matcher.v3.CelMatcher",
		"xds.type.matcher.v3.IPMatcher",
		"xds.type.matcher.v3.Matcher",
		"xds.type.matcher.v3.ServerNameMatcher",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *xdsmatcherv3.Matcher:
			if m.GetMatcherType() == nil && m.GetOnNoMatch() == nil {
				p.Report(validate.Finding{
					Check: "empty-matcher",
					Path:  n.Path(), Warning: true,
					Message: "the matcher is empty and matches nothing",
					Help:    "add a matcher_list, a matcher_tree or on_no_match",
				})
			}
		case *xdsmatcherv3.CelMatcher:
			checkExpression(p, n, m.GetExprMatch())
		case *xdsmatcherv3.IPMatcher:
			for i, r := range m.GetRangeMatchers() {
				checkOnMatch(p, n.Path().Field("range_matchers").Index(i), r.GetOnMatch())
			}
		case *xdsmatcherv3.ServerNameMatcher:
			checkServerNames(p, n, m)
		}
	},
}

func checkOnMatch(p *validate.Pass, path xds.Path, onMatch *xdsmatcherv3.Matcher_OnMatch) {
	if onMatch == nil {
		p.Report(validate.Finding{Check: "no-on-match", Path: path, Message: "the entry has no on_match: " +
			"Envoy crashes", Help: "add on_match with an action or a matcher"})
	}
}

func checkServerNames(p *validate.Pass, n *xds.Node, m *xdsmatcherv3.ServerNameMatcher) {
	seen := make(map[string]bool)
	for i, entry := range m.GetDomainMatchers() {
		path := n.Path().Field("domain_matchers").Index(i)
		checkOnMatch(p, path, entry.GetOnMatch())
		for j, domain := range entry.GetDomains() {
			f := validate.Finding{Check: "domain", Path: path.Field("domains").Index(j)}
			switch {
			case domain == "":
				f.Message = "the domain is empty"
				f.Help = "write *, which matches every name"
			case badWildcard(domain):
				f.Message = fmt.Sprintf("domain %q has an invalid wildcard: write * alone, or as the first label, as in *.example.com", domain)
				f.Help = "for other patterns, use a matcher_list with a regular expression"
			case seen[domain]:
				f.Message = fmt.Sprintf("duplicate domain %q", domain)
				f.Help = "remove one of them"
			}
			seen[domain] = true
			if f.Message != "" {
				p.Report(f)
			}
		}
	}
}

func badWildcard(domain string) bool {
	rest, wild := strings.CutPrefix(domain, "*.")
	if wild && rest == "" {
		return true
	}
	return domain != "*" && strings.Contains(rest, "*")
}

func checkExpression(p *validate.Pass, n *xds.Node, e *xdstypev3.CelExpression) {
	if e == nil {
		return // reported by field-constraint
	}
	f := validate.Finding{Check: "cel-expression", Path: n.Path(), Help: "parse the expression, and write the result in cel_expr_parsed or cel_expr_checked"}
	parsed := e.GetCelExprParsed() != nil || e.GetCelExprChecked() != nil || e.GetExprSpecifier() != nil
	switch {
	case !parsed && e.GetCelExprString() != "":
		f.Path = f.Path.Field("expr_match").Field("cel_expr_string")
		f.Message = "CelMatcher does not read cel_expr_string"
	case !parsed:
		f.Message = "CelMatcher has no expression"
	default:
		return // bad-cel-expression judges the content of the expression
	}
	p.Report(f)
}
