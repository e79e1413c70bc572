package matcher

import (
	"fmt"
	"regexp/syntax"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/validate/re2"
	"xdspub/xds"
)

var neverMatches = &validate.Rule{
	Code:     "never-matches",
	Severity: diag.Warning,
	Doc: `A route, domain, header matcher or origin never matches.

Envoy accepts it, and the requests get 404 or another route. How Envoy matches:

- A path begins with a slash, and is compared without its query.
- A regular expression must match the whole path: /a does not match /a/b, and an expression
  without operators matches one path only.
- In a domain, * is a wildcard only at the beginning or at the end. A domain has no path,
  and with ignore_port_in_host_matching no port.
- A range excludes its end.
- An origin has a scheme and no path, as a browser sends it.`,
	Checks: []diag.Check{
		{Name: "domain", Summary: "No host matches a domain."},
		{Name: "header-range", Summary: "The range of a header matcher is empty."},
		{Name: "one-path-only", Summary: "A regular expression has no operators and matches one path only."},
		{Name: "origin", Summary: "No browser sends an origin."},
		{Name: "path", Summary: "No path matches a prefix, a path or a regular expression."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.CorsPolicy",
		"envoy.config.route.v3.HeaderMatcher",
		"envoy.config.route.v3.RouteMatch",
		"envoy.config.route.v3.VirtualHost",
		"envoy.extensions.filters.http.cors.v3.CorsPolicy",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		report := func(check validate.CheckName, field xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(field), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *routev3.CorsPolicy:
			checkOrigins(m.GetAllowOriginStringMatch(), report)
		case *corsv3.CorsPolicy:
			checkOrigins(m.GetAllowOriginStringMatch(), report)
		case *routev3.HeaderMatcher:
			if r := m.GetRangeMatch(); r != nil && r.GetStart() >= r.GetEnd() && !m.GetInvertMatch() {
				report("header-range", "range_match", fmt.Sprintf("the range from %d "+
					"to %d is empty", r.GetStart(), r.GetEnd()), "write an end above the start: the range excludes its end")
			}
		case *routev3.RouteMatch:
			checkPath(m, report)
		case *routev3.VirtualHost:
			routes, _ := xds.Enclosing[*routev3.RouteConfiguration](n)
			for i, domain := range m.GetDomains() {
				if what, help := wrongDomain(domain, routes.GetIgnorePortInHostMatching()); what != "" {
					report("domain", xds.Path("domains").Index(i), fmt.Sprintf("domain %q matches no host: %s", domain, what), help)
				}
			}
		}
	},
}

// checkOrigins reports exact origins that no browser sends. RFC 6454 defines the form of an origin.
func checkOrigins(origins []*matcherv3.StringMatcher, report func(check validate.CheckName, field xds.Path, message, help string)) {
	for i, m := range origins {
		exact, is := m.GetMatchPattern().(*matcherv3.StringMatcher_Exact)
		if !is || exact.Exact == "*" || exact.Exact == "null" || exact.Exact == "" {
			continue
		}
		_, host, hasScheme := strings.Cut(exact.Exact, "://")
		field := xds.Path("allow_origin_string_match").Index(i).Field("exact")
		switch {
		case !hasScheme:
			report("origin", field, fmt.Sprintf("origin %q never matches: it has no scheme", exact.Exact), fmt.Sprintf("write %q", "https://"+exact.Exact))
		case strings.Contains(host, "/"):
			host, _, _ = strings.Cut(host, "/")
			report("origin", field, fmt.Sprintf("origin %q never matches: it has a path", exact.Exact), fmt.Sprintf("remove what follows %q", host))
		}
	}
}

func checkPath(m *routev3.RouteMatch, report func(check validate.CheckName, field xds.Path, message, help string)) {
	plain := func(field xds.Path, path string) {
		switch {
		case path == "" && field == "prefix" || path == "*": // the prefix "" matches every path, and * matches OPTIONS *
		case !strings.HasPrefix(path, "/"):
			report("path", field, fmt.Sprintf("%s %q matches no path", field, path), "write a path that begins with a slash")
		case strings.ContainsAny(path, "?#"):
			report("path", field, fmt.Sprintf("%s %q matches no path", field, path), "remove the query: Envoy compares the path "+
				"without it; query_parameters match it")
		}
	}
	switch s := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		plain("prefix", s.Prefix)
	case *routev3.RouteMatch_Path:
		plain("path", s.Path)
	case *routev3.RouteMatch_SafeRegex:
		regex := s.SafeRegex.GetRegex()
		if _, err := re2.Compile(regex, re2.Latin1); err != nil || regex == "" {
			return // reported by bad-regex or field-constraint
		}
		switch re, err := syntax.Parse(regex, syntax.Perl); {
		case err != nil: // Go can't parse syntax that only RE2 has
		case !canBeginPath(re):
			report("path", "safe_regex.regex", fmt.Sprintf("regular expression %q "+
				"matches no path", regex), "begin with a slash; the expression must match the whole path")
		case isText(re):
			report("one-path-only", "safe_regex.regex", fmt.Sprintf("regular expression %q has no operators and matches "+
				"one path only", regex), "append .* to match longer paths, or use path for an exact match")
		}
	}
}

// canBeginPath reports whether a regular expression can match a text that begins with a slash.
func canBeginPath(re *syntax.Regexp) bool {
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return true
	}
	seen := make([]bool, len(program.Inst))
	var from func(pc uint32) bool
	from = func(pc uint32) bool {
		if seen[pc] {
			return false
		}
		seen[pc] = true
		switch i := &program.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			return from(i.Out) || from(i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			return from(i.Out)
		case syntax.InstEmptyWidth:
			return syntax.EmptyOp(i.Arg)&(syntax.EmptyEndText|syntax.EmptyEndLine) == 0 && from(i.Out)
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			return i.MatchRune('/')
		default: // the end of the expression, or no match
			return false
		}
	}
	return from(uint32(program.Start))
}

// isText reports whether a regular expression is plain text. Anchors are allowed.
func isText(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase == 0
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return true
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !isText(sub) {
				return false
			}
		}
		return true
	}
	return false
}

// wrongDomain returns the reason why no host matches a domain, and the help. what is "" if a host can match.
func wrongDomain(domain string, ignorePort bool) (what, help string) {
	// If a domain begins with *, a * at its end is no wildcard.
	rest, suffix := strings.CutPrefix(domain, "*")
	if !suffix {
		rest = strings.TrimSuffix(domain, "*")
	}
	switch {
	case strings.Contains(rest, "*"):
		return "a * in the middle is not a wildcard", "write * at the beginning or at the end only"
	case strings.ContainsAny(domain, "/ \t"):
		return "a host contains neither a path nor spaces", "write the host only, with the port that clients send if it is not the default"
	case ignorePort && facts.PortAtEnd.MatchString(domain):
		return "ignore_port_in_host_matching removes the port from the host", "remove the port"
	}
	return "", ""
}
