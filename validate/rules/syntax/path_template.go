package syntax

import (
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	templatematchv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	templaterewritev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/rewrite/uri_template/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/validate/uritemplate"
	"xdspub/xds"
)

var pathTemplate = &validate.Rule{
	Code: "path-template",
	Doc: `A URI template is invalid.

Envoy's URI templates have * for one path segment, as in /users/*, ** for all that follows, as in
/files/**, and {name} or {name=pattern} for a variable that a rewrite can use. A template has at
most five variables, with names of at most 16 characters, and no wildcard or variable after **.
Envoy rejects any other template ("path_match_policy.path_template /{a is invalid"), and a
rewrite with a variable that the match does not have ("mismatch between variables in
path_match_policy and path_rewrite_policy"). Before 1.39 a variable begins its segment, and in all but
the last ends it.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig",
		"envoy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *templatematchv3.UriTemplateMatchConfig:
			if _, err := uritemplate.Match(m.GetPathTemplate(), p.Envoy.TemplatesMixSegments()); err != nil && m.GetPathTemplate() != "" {
				p.Report(validate.Finding{
					Path:    n.Path().Field("path_template"),
					Message: fmt.Sprintf("invalid path template %q: %v", m.GetPathTemplate(), err),
					Help:    "write segments such as users, *, {id}, and ** at the end for all that follows",
				})
			}
		case *templaterewritev3.UriTemplateRewriteConfig:
			checkRewriteTemplate(p, n, m.GetPathTemplateRewrite())
		}
	},
}

func checkRewriteTemplate(p *validate.Pass, n *xds.Node, template string) {
	if template == "" {
		return // reported by field-constraint
	}
	path := func() xds.Path { return n.Path().Field("path_template_rewrite") }
	used, err := uritemplate.Rewrite(template)
	if err != nil {
		p.Report(validate.Finding{
			Path:    path(),
			Message: fmt.Sprintf("invalid rewrite template %q: %v", template, err),
			Help:    "write a path, with {name} for a variable of path_match_policy",
		})
		return
	}
	matched, ok := matchedNames(n)
	for _, name := range used {
		if ok && !slices.Contains(matched, name) {
			f := validate.Finding{
				Path:    path(),
				Message: fmt.Sprintf("the rewrite template uses {%s}, which path_match_policy does not have", name),
				Help:    "add a segment of this name to path_match_policy",
			}
			if len(matched) > 0 {
				f.Help = "write one of " + facts.Quoted(matched)
			}
			p.Report(f)
			return
		}
	}
}

// matchedNames returns the names in the path template of the route around n. ok is false if the route has no valid
// template.
func matchedNames(n *xds.Node) (names []string, ok bool) {
	route, _ := xds.Enclosing[*routev3.Route](n)
	policy := route.GetMatch().GetPathMatchPolicy().GetTypedConfig()
	var match templatematchv3.UriTemplateMatchConfig
	if policy == nil || policy.UnmarshalTo(&match) != nil {
		return nil, false
	}
	names, err := uritemplate.Match(match.GetPathTemplate(), true)
	return names, err == nil
}
