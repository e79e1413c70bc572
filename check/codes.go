package check

import (
	"slices"

	"xdspub/check/oracle"
	"xdspub/diag"
	"xdspub/setup/grpcboot"
	"xdspub/source/decode"
	"xdspub/source/follow"
	"xdspub/source/upstream"
	"xdspub/validate/rules"
)

// Codes returns the codes of all findings of a check. The loader and a rule may share a code, if both can find the
// same fault.
func Codes() []diag.Code {
	return slices.Concat(
		RuleCodes(), reading(slices.Concat(decode.Codes, upstream.Codes,
			[]diag.Code{codeEmptyTree, codeOutputInSource, codeTakenAs, codeTooManyClients, codeOtherTarget, diag.TooMany})),
		diag.InFamily("publishing", oracle.Codes),
	)
}

// RuleCodes returns the codes that a user can disable: the codes of validation rules, of findings about files that
// a bootstrap names, of findings about bootstraps of gRPC, and of findings about ignored files and findings.
func RuleCodes() []diag.Code {
	codes := slices.Concat(diag.InFamily("following", follow.Codes), diag.InFamily("grpc", grpcboot.Codes),
		reading([]diag.Code{codeUnusedIgnore, codeIgnoreComment, codeUnusedOwners}))
	for _, r := range rules.All {
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc, Checks: r.Checks, Family: r.Family})
	}
	return codes
}

// reading returns codes with the family "reading".
func reading(codes []diag.Code) []diag.Code { return diag.InFamily("reading", codes) }

// ruleOfOwners is the code of the rule about references that cross owners. Options.Owners turn the rule on.
const ruleOfOwners = "crossed-owners"

// ruleOfVersions is the code of the rule about fields and values that an older Envoy lacks.
const ruleOfVersions = "newer-than-envoy"

// The code of the rule about the dates of certificates, and its sub-codes.
const (
	ruleOfDates     = "expired-certificate"
	codeExpired     = ruleOfDates + "/expired"
	codeExpiresSoon = ruleOfDates + "/expires-soon"
	codeNotYetValid = ruleOfDates + "/not-yet-valid"
)

// Certificates returns the findings about certificates that are out of date, and the findings about certificates
// that expire soon.
func Certificates(l diag.List) (outOfDate, expireSoon diag.List) {
	for _, d := range l {
		switch d.Code {
		case codeExpired, codeNotYetValid:
			outOfDate = append(outOfDate, d)
		case codeExpiresSoon:
			expireSoon = append(expireSoon, d)
		}
	}
	return outOfDate, expireSoon
}

// OptIn returns the codes of validation rules that are off by default.
func OptIn() (codes []string) {
	for _, r := range rules.All {
		if r.OptIn {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

var (
	codeEmptyTree = diag.Code{Name: "empty-tree", Doc: `The source tree has no resources.

Envoy would read empty files as an order to remove all clusters and listeners, and report success.
An empty source tree is usually a wrong path, a failed checkout or a failed template. If you mean
it, use --allow-empty.`}

	codeOutputInSource = diag.Code{Name: "output-in-source", Doc: `The output directory and the source tree overlap.

xdspub would read what it has published as a source the next time. Keep the two apart.`}

	codeTooManyClients = diag.Code{Name: "too-many-clients", Severity: diag.Warning, Doc: `The variants of resources tell too many clients apart.

Without --param or targets, a client is judged for each combination of variants that one finding can
depend on, such as the variants of a route, of its cluster and of the endpoints. If more than 1,000
clients are needed, or if the constraints combine too many keys, not all are judged. Then findings
may be missing, and an error stays an error if each judged client that gets the resource has the
error.`}

	codeOtherTarget = diag.Code{Name: "other-target", Doc: `Another target of the source tree is refused.

With --all-or-nothing, one refused target keeps all targets from being published. A target is
refused if the source tree, or the change from the published snapshot, has errors for the target, or
if its Envoys have rejected its snapshot. The findings of that one say why.`}

	codeTakenAs = diag.Code{Name: "taken-as", Severity: diag.Info, Doc: `A file could be a bootstrap or a file of resources.

For a single file, validate decides by the names at the top: a file with a field of a bootstrap is
a bootstrap, which it follows; a file with @type, resources or a list is part of a source tree. A
misspelt name can make one look like the other.`}

	codeIgnoreComment = diag.Code{Name: "ignore-comment", Severity: diag.Warning, Doc: `A comment with xdspub:ignore ignores nothing as it is written.

Such a comment has one rule, or several with commas, and a reason in words: "# xdspub:ignore
unresolved-reference the cluster comes by another server". Without a reason, or with an unknown
rule, the comment has no effect. Findings about what xdspub can't read can't be ignored, and
findings about a change of what is published can only be turned off. A file has at most 10,000 such
comments.`}

	codeUnusedIgnore = diag.Code{Name: "unused-ignore", Severity: diag.Info, Doc: `An ignore pattern, or a comment with xdspub:ignore, has nothing to ignore.

A pattern with a typing error has no effect: the file that it should leave out is read and
published. A comment may have outlived its finding, or stand on a wrong line: a comment concerns
its own line, the line below, or a resource that begins there. Comments are judged only if all
files can be read. The finding is information, and never refuses a tree, even with
--warnings-as-errors: settings of several trees have patterns for each of them, and a pattern may
stand for files that come and go. A watch judges patterns at each look at the whole tree.`}

	codeUnusedOwners = diag.Code{Name: "unused-owners", Severity: diag.Warning, Doc: `A pattern of the setting owners matches no folder.

The folders that the pattern should name are shared then: an error in one of them keeps the whole
source tree from being published. Correct the pattern. If the folders come later, add the pattern
with them.`}
)
