package syntax

import (
	"strings"

	"xdspub/diag"
	"xdspub/envoyapi"
	"xdspub/validate"
	"xdspub/validate/cel"
	"xdspub/validate/facts"
	"xdspub/validate/substitution"
	"xdspub/xds"
)

var badFormatString = &validate.Rule{
	Code:     "bad-format-string",
	Severity: diag.Error,
	Doc: `A format string has an unknown or invalid command.

Access logs, headers to add, bodies, rewrites and other texts have commands such
as %REQ(:authority)%. Envoy reads them when it loads the resource, and refuses it
for a command it does not know ("Not supported field in StreamInfo: FOO"), for one
that is not finished ("Couldn't find valid command at position 4"), and for an
argument or a length that a command does not take ("PROTOCOL does not take any
parameters or length"). %COALESCE(…)% of JSON that is no object crashes it. A
percent sign is written %%.

The command of an extension needs its formatter beside the format. The access logs of
generic_proxy have commands of their own, such as %METHOD%. The counts of
the stats access log and of hits_addend are one command and nothing else.

In the initial_metadata of a gRPC service that is called for requests, Envoy looks
at the format with the first of them: ext_authz and ratelimit crash it then; that
tracing and ext_proc do without the service is a warning. The key_formatter of
redis_proxy crashes it with the first command. In both places %CEL(…)% always does.

Also a warning is what Envoy takes, but in another way than it looks:
%PER_REQUEST_STATE(…)% and JSON in %DYNAMIC_METADATA(…)%, which are obsolete, and
a mask that is no prefix length.`,
	MessagesOf: holdsFormats,
	Node: func(p *validate.Pass, n *xds.Node) {
		generic := facts.Inside(n, "envoy.extensions.filters.network.generic_proxy.v3.GenericProxy.access_log")
		l := language(p.Envoy)
		for _, f := range formatsOf(p.Envoy, n) {
			f.extensions.Generic = generic
			for _, fault := range f.faults(l) {
				if facts.Inside(n, facts.TLVsOfHealthCheck) {
					return // Envoy never looks into it
				}
				p.Report(validate.Finding{
					Path: n.Path().Join(f.path), Message: fault.Message, Help: fault.Help, Correction: fault.Correction,
					Warning: fault.Taken || f.lazy && !fault.Crash,
				})
			}
		}
	},
}

func (f format) faults(l *substitution.Language) []substitution.Fault {
	if f.header && strings.ContainsAny(f.text, "\x00\n\r") {
		return nil // field-constraint has that one
	}
	check := l.Check
	if f.header {
		check = l.CheckHeader
	}
	faults := check(f.text, f.extensions)
	if len(faults) == 0 && f.single && l.Parts(f.text, f.extensions) > 1 {
		return []substitution.Fault{{Message: "the format has more than one command", Help: "leave one command and nothing else, such as %BYTES_SENT%"}}
	}
	return faults
}

// language returns what a version has for format strings.
func language(v *envoyapi.Version) *substitution.Language {
	c := v.FormatCommands()
	return &substitution.Language{BuiltIn: c.BuiltIn, Names: c.Names, Generic: c.Generic, Functions: cel.Functions(v.CELFunctions())}
}
