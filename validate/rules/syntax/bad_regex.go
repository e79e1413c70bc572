package syntax

import (
	"fmt"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/validate/re2"
	"xdspub/xds"
)

var badRegex = &validate.Rule{
	Code: "bad-regex",
	Doc: `A regular expression is invalid, or too large for Envoy.

Envoy compiles RE2 in Latin-1: lookaround, back-references and possessive
repetitions do not exist, and escapes end at \xFF. A program of more than 100
instructions is refused ("RE2 program size of 101 > max program size of 100"),
unless google_re2.max_program_size says otherwise; the runtime key
re2.max_program_size.error_level is not looked at here. A class such as [é] and a
repetition such as é+ are taken, and see single bytes.

Upper and lower case can't be ignored by ignore_case ("ignore_case has no effect for
safe_regex"), only by the expression itself: (?i).

A substitution that names a group that the pattern does not have is taken, and
never applies.`,
	Messages: []protoreflect.FullName{
		"envoy.type.matcher.v3.RegexMatcher",
		"envoy.type.matcher.v3.RegexMatchAndSubstitute",
		"envoy.type.matcher.v3.StringMatcher",
		"xds.type.matcher.v3.RegexMatcher",
		"xds.type.matcher.v3.StringMatcher",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if facts.Inside(n, "envoy.data.dns.v3.DnsTable.known_suffixes") {
			return // deprecated, and Envoy never looks at them
		}
		switch m := n.Message.(type) {
		case *matcherv3.RegexMatchAndSubstitute:
			checkRewrite(p, n, m)
		case *matcherv3.StringMatcher:
			ignoredCase(p, n, m.GetIgnoreCase() && m.GetSafeRegex() != nil)
		case *xdsmatcherv3.StringMatcher:
			ignoredCase(p, n, m.GetIgnoreCase() && m.GetSafeRegex() != nil)
		case interface{ GetRegex() string }: // the RegexMatcher of either package
			pattern(p, n, m.GetRegex())
		}
	},
}

func ignoredCase(p *validate.Pass, n *xds.Node, wrong bool) {
	if wrong {
		p.Report(validate.Finding{
			Path:    n.Path().Field("ignore_case"),
			Message: "ignore_case stands beside safe_regex",
			Help:    "begin the regular expression with (?i)",
		})
	}
}

// defaultRegexSize is what Envoy allows if nothing else is set.
const defaultRegexSize = 100

func pattern(p *validate.Pass, n *xds.Node, regex string) {
	if regex == "" {
		return // field-constraint
	}
	limit := defaultRegexSize
	if m, ok := n.Message.(*matcherv3.RegexMatcher); ok && m.GetGoogleRe2().GetMaxProgramSize() != nil {
		limit = int(m.GetGoogleRe2().GetMaxProgramSize().GetValue())
	}
	program, err := re2.Compile(regex)
	path := func() xds.Path { return n.Path().Field("regex") }
	switch {
	case err != nil:
		p.Report(validate.Finding{
			Path:    path(),
			Message: fmt.Sprintf("regular expression %q: %v", regex, err),
			Help:    "the syntax is RE2's: https://github.com/google/re2/wiki/Syntax",
		})
	case program.Size > limit:
		p.Report(validate.Finding{
			Path:    path(),
			Message: fmt.Sprintf("regular expression of %d instructions, Envoy takes at most %d", program.Size, limit),
			Help:    "match a prefix or an exact path where that is enough, or split the expression into several routes or matchers",
			// A few instructions can be too many, not a third.
			Warning: !program.Exact && program.Size <= limit+limit/3,
		})
	case program.SplitsCharacters:
		p.Report(validate.Finding{
			Path:    path(),
			Message: fmt.Sprintf("regular expression %q: Envoy sees the single bytes of a character outside of ASCII in a class or before a repetition", regex),
			Help:    "write alternatives, as in (?:é|è)",
			Warning: true,
		})
	}
}

// checkRewrite checks the groups that a substitution names: \1, and \0 for all.
func checkRewrite(p *validate.Pass, n *xds.Node, m *matcherv3.RegexMatchAndSubstitute) {
	program, err := re2.Compile(m.GetPattern().GetRegex())
	if err != nil {
		return // reported at the pattern
	}
	report := func(message string) {
		p.Report(validate.Finding{
			Path:    n.Path().Field("substitution"),
			Message: fmt.Sprintf("substitution %q can't apply: %s", m.GetSubstitution(), message),
			Help:    `\1 is the first group, \0 the whole match, \\ a backslash`,
			Warning: true,
		})
	}
	s := m.GetSubstitution()
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		switch {
		case i == len(s):
			report("a backslash stands at the end")
		case '0' <= s[i] && s[i] <= '9':
			if group := int(s[i] - '0'); group > program.Groups {
				report(fmt.Sprintf("the pattern has no group %d", group))
			}
		case s[i] != '\\':
			report(fmt.Sprintf("\\%c is no escape", s[i]))
		}
	}
}
