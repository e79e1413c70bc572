package check

import (
	"slices"

	"xdspub/diag"
	"xdspub/follow"
	"xdspub/load"
	"xdspub/validate/rules"
)

// Codes returns those of all findings of a check. A rule may share its code with the loader,
// which meets the same fault earlier.
func Codes() []diag.Code {
	return slices.Concat(RuleCodes(), load.Codes, []diag.Code{codeEmptyTree, codeOutputInSource, codeTakenAs, diag.TooMany})
}

// RuleCodes returns those of the codes that can be disabled: of the validation rules, and of
// what is said about the files that a bootstrap leads to.
func RuleCodes() []diag.Code {
	codes := slices.Clone(follow.Codes)
	for _, r := range rules.All {
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc})
	}
	return codes
}

var (
	codeEmptyTree = diag.Code{Name: "empty-tree", Doc: `The source tree has no resources.

Envoy takes an empty file as an order to remove all clusters or listeners, and
calls that a success. A tree without resources is mostly a wrong path, a failed
checkout or a failed template; --allow-empty says that it is meant.`}

	codeOutputInSource = diag.Code{Name: "output-in-source", Doc: `The output directory and the source tree overlap.

What is published would be read as a source the next time.`}

	codeTakenAs = diag.Code{Name: "taken-as", Severity: diag.Info, Doc: `It is not clear whether a file is a bootstrap or holds resources.

validate follows the bootstrap of an Envoy and reads any other file as a part of a source
tree. It tells them apart by the names at the top of the file: a bootstrap has one of its
fields there, a file of resources an @type, resources or a list. A name that is misspelt
makes the one look like the other.`}
)
