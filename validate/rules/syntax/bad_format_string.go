package syntax

import (
	"strings"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
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

Access logs, added headers, bodies, rewrites and other fields support commands such as
%REQ(:authority)%. Envoy parses them when it loads the resource. It rejects an unknown command
("Not supported field in StreamInfo: FOO"), an unfinished one ("Couldn't find valid command at
position 4"), and an argument or length that a command does not support ("PROTOCOL does not take
any parameters or length"). %COALESCE(…)% with JSON that is not an object crashes it. Write %%
for a percent sign.

A command of an extension needs its formatter in the same message. The access logs of
generic_proxy have their own commands, such as %METHOD%. The values of the stats access log and
of hits_addend must be exactly one command.

Envoy parses the initial_metadata of a gRPC service at the first request: a mistake there crashes
ext_authz and ratelimit, and makes tracing and ext_proc continue without the service (a warning).
The key_formatter of redis_proxy crashes at the first command. In both places %CEL(…)% always
crashes Envoy.

It is a warning if Envoy accepts a format with another meaning than it seems to have: the
obsolete %PER_REQUEST_STATE(…)% and JSON in %DYNAMIC_METADATA(…)%, and an invalid prefix length.`,
	MessagesOf: holdsFormats,
	Node: func(p *validate.Pass, n *xds.Node) {
		generic := facts.Inside(n, "envoy.extensions.filters.network.generic_proxy.v3.GenericProxy.access_log")
		l := language(p.Envoy)
		for _, f := range formatsOf(p.Envoy, n) {
			f.extensions.Generic = generic
			for _, fault := range f.faults(l) {
				if facts.Inside(n, facts.TLVsOfHealthCheck) {
					return // Envoy ignores these TLVs
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
		return nil // field-constraint reports it
	}
	check := l.Check
	if f.header {
		check = l.CheckHeader
	}
	faults := check(f.text, f.extensions)
	if len(faults) == 0 && f.single && l.Parts(f.text, f.extensions) > 1 {
		return []substitution.Fault{{Message: "the format must be exactly one command", Help: "write one command and nothing else, such as %BYTES_SENT%"}}
	}
	return faults
}

// language returns the language of format strings of an Envoy version.
func language(v *envoyapi.Version) *substitution.Language {
	c := v.FormatCommands()
	return &substitution.Language{BuiltIn: c.BuiltIn, Names: c.Names, Newer: c.Newer, Generic: c.Generic, Functions: cel.Functions(v.CELFunctions())}
}
