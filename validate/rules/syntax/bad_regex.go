package syntax

import (
	"fmt"
	"math"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/validate/re2"
	"xdspub/xds"
)

var badRegex = &validate.Rule{
	Code:     "bad-regex",
	Profiles: validate.Profiles,
	Doc: `A regular expression is invalid, or too large for Envoy.

Envoy compiles RE2 with Latin-1: it does not support lookaround, back-references and possessive
repetition, and escapes go up to \xFF. It rejects a program of more than 100 instructions ("RE2
program size of 101 > max program size of 100"), unless google_re2.max_program_size sets another
limit; this rule does not read the runtime key re2.max_program_size.error_level. In a class such
as [é] and a repetition such as é+ Envoy sees single bytes (a warning). Envoy before 1.39 compiles RE2
with UTF-8, where . and [^/] have six instructions more.

ignore_case does not work here ("ignore_case has no effect for safe_regex"): write (?i) in the
expression.

Envoy accepts a substitution with a group that the pattern does not have, and never applies it
(a warning).`,
	Checks: []diag.Check{
		{Name: "ignored-case", Summary: "ignore_case is set beside a regular expression."},
		{Name: "invalid-pattern", Summary: "A regular expression is invalid."},
		{Name: "program-size", Summary: "A regular expression has too many instructions."},
		{Name: "single-bytes", Summary: "Envoy reads a non-ASCII character as single bytes."},
		{Name: "substitution", Summary: "A substitution never applies."},
	},
	Messages: []protoreflect.FullName{
		"envoy.type.matcher.v3.RegexMatcher",
		"envoy.type.matcher.v3.RegexMatchAndSubstitute",
		"envoy.type.matcher.v3.StringMatcher",
		"xds.type.matcher.v3.RegexMatcher",
		"xds.type.matcher.v3.StringMatcher",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if facts.Inside(n, "envoy.data.dns.v3.DnsTable.known_suffixes") {
			return // known_suffixes is deprecated, and Envoy ignores it
		}
		switch m := n.Message.(type) {
		case *matcherv3.RegexMatchAndSubstitute:
			checkRewrite(p, n, m)
		case *matcherv3.StringMatcher:
			ignoredCase(p, n, m.GetIgnoreCase() && m.GetSafeRegex() != nil)
		case *xdsmatcherv3.StringMatcher:
			ignoredCase(p, n, m.GetIgnoreCase() && m.GetSafeRegex() != nil)
		case interface{ GetRegex() string }: // RegexMatcher of envoy.type or xds.type
			pattern(p, n, m.GetRegex())
		}
	},
}

func ignoredCase(p *validate.Pass, n *xds.Node, wrong bool) {
	if wrong {
		p.Report(validate.Finding{
			Check:   "ignored-case",
			Path:    n.Path().Field("ignore_case"),
			Message: "ignore_case is not supported with safe_regex",
			Help:    "remove ignore_case, and begin the regular expression with (?i)",
		})
	}
}

// defaultRegexSize is Envoy's default for the largest number of instructions of a regular expression.
const defaultRegexSize = 100

func pattern(p *validate.Pass, n *xds.Node, regex string) {
	if regex == "" {
		return // reported by field-constraint
	}
	limit := defaultRegexSize
	if m, ok := n.Message.(*matcherv3.RegexMatcher); ok && m.GetGoogleRe2().GetMaxProgramSize() != nil {
		limit = int(m.GetGoogleRe2().GetMaxProgramSize().GetValue())
	}
	if p.GRPCAlone() { // gRPC reads UTF-8, and has no limit
		if f, ok := faultOf(regex, math.MaxInt, re2.UTF8, ""); ok {
			f.Path = n.Path().Field("regex")
			p.Report(f)
		}
		return
	}
	if p.Envoy.RegexesAreBytes() {
		if f, ok := faultOf(regex, limit, re2.Latin1, "the regular expression"); ok {
			f.Path = n.Path().Field("regex")
			p.Report(f)
			return
		}
	}
	if p.Envoy.RegexesAreUTF8() {
		if f, ok := faultOf(regex, limit, re2.UTF8, "before Envoy 1.39, the regular expression"); ok {
			f.Path = n.Path().Field("regex")
			p.Report(f)
		}
	}
}

// faultOf returns the fault of a regular expression in an encoding. limit is the largest number of instructions.
// subject names the expression in messages.
func faultOf(regex string, limit int, in re2.Encoding, subject string) (validate.Finding, bool) {
	program, err := re2.Compile(regex, in)
	switch {
	case err != nil:
		return validate.Finding{
			Check:   "invalid-pattern",
			Message: fmt.Sprintf("invalid regular expression %q: %v", regex, err),
			Help:    "write RE2 syntax: https://github.com/google/re2/wiki/Syntax",
		}, true
	case program.Size > limit:
		return validate.Finding{
			Check:   "program-size",
			Message: fmt.Sprintf("%s has %d instructions, the limit is %d", subject, program.Size, limit),
			Help:    "match a prefix or an exact path if that is enough, or split the expression into several routes or matchers",
			Warning: !program.TooLarge(limit),
		}, true
	case program.SplitsCharacters:
		return validate.Finding{
			Check:   "single-bytes",
			Message: fmt.Sprintf("regular expression %q: in a class or before a repetition, Envoy reads a non-ASCII character as single bytes", regex),
			Help:    "write alternatives, as in (?:é|è)",
			Warning: true,
		}, true
	}
	return validate.Finding{}, false
}

// checkRewrite checks the references to groups in a substitution: \1 and so on, and \0 for the whole match.
func checkRewrite(p *validate.Pass, n *xds.Node, m *matcherv3.RegexMatchAndSubstitute) {
	program, err := re2.Compile(m.GetPattern().GetRegex(), re2.Latin1)
	if err != nil {
		return // the finding about the pattern is enough
	}
	report := func(message string) {
		p.Report(validate.Finding{
			Check:   "substitution",
			Path:    n.Path().Field("substitution"),
			Message: fmt.Sprintf("substitution %q never applies: %s", m.GetSubstitution(), message),
			Help:    `write \1 for the first group, \0 for the whole match, \\ for a backslash`,
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
			report("it ends with a backslash")
		case '0' <= s[i] && s[i] <= '9':
			if group := int(s[i] - '0'); group > program.Groups {
				report(fmt.Sprintf("the pattern has no group %d", group))
			}
		case s[i] != '\\':
			report(fmt.Sprintf("\\%c is not a valid escape", s[i]))
		}
	}
}
