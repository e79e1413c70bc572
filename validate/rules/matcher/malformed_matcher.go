package matcher

import (
	"fmt"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var malformedMatcher = &validate.Rule{
	Code: "malformed-matcher",
	Doc: `A matcher is incomplete or has an invalid value.

An entry of an IPMatcher or ServerNameMatcher without on_match crashes Envoy. A
ServerNameMatcher takes *, *.example.com and names without a *; it refuses everything
else ("Invalid wildcard domain format"), an empty name, and one that stands twice, in
whatever entries ("Duplicate domain in ServerNameMatcher").

The expression of a CelMatcher is one that a compiler has parsed or checked:
cel_expr_string counts as none ("CEL expression not set").

A matcher with nothing in it is taken, and matches nothing.`,
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
					Path: n.Path(), Warning: true,
					Message: "matcher is empty, and matches nothing",
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
		p.Report(validate.Finding{Path: path, Message: "entry has no on_match: Envoy crashes", Help: "say what follows from a match"})
	}
}

func checkServerNames(p *validate.Pass, n *xds.Node, m *xdsmatcherv3.ServerNameMatcher) {
	seen := make(map[string]bool)
	for i, entry := range m.GetDomainMatchers() {
		path := n.Path().Field("domain_matchers").Index(i)
		checkOnMatch(p, path, entry.GetOnMatch())
		for j, domain := range entry.GetDomains() {
			f := validate.Finding{Path: path.Field("domains").Index(j)}
			switch {
			case domain == "":
				f.Message = "domain is empty"
				f.Help = "for every name, write *"
			case badWildcard(domain):
				f.Message = fmt.Sprintf("domain %q: a wildcard is * alone or the first label, as in *.example.com", domain)
				f.Help = "match the rest by a matcher_list with a regular expression"
			case seen[domain]:
				f.Message = fmt.Sprintf("domain %q stands twice", domain)
				f.Help = "remove one of the two"
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
		return // field-constraint
	}
	f := validate.Finding{Path: n.Path(), Help: "compile the expression, and give it in cel_expr_parsed or cel_expr_checked"}
	parsed := e.GetCelExprParsed() != nil || e.GetCelExprChecked() != nil || e.GetExprSpecifier() != nil
	switch {
	case !parsed && e.GetCelExprString() != "":
		f.Path = f.Path.Field("expr_match").Field("cel_expr_string")
		f.Message = "Envoy does not compile CEL text"
	case !parsed:
		f.Message = "CelMatcher has no expression"
	default:
		return // what is in it is judged by bad-cel-expression
	}
	p.Report(f)
}
