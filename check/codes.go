package check

import (
	"slices"

	"xdspub/diag"
	"xdspub/follow"
	"xdspub/load"
	"xdspub/validate/rules"
)

// Codes returns the codes of all findings of a check. A rule may share its code with the loader,
// which meets the same fault earlier.
func Codes() []diag.Code {
	return slices.Concat(RuleCodes(), load.Codes, []diag.Code{codeEmptyTree, codeOutputInSource, codeTakenAs, diag.TooMany})
}

// RuleCodes returns the codes that can be disabled: those of the validation rules, of the
// findings about the files that a bootstrap leads to, and unused-ignore.
func RuleCodes() []diag.Code {
	codes := append(slices.Clone(follow.Codes), codeUnusedIgnore)
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

	codeUnusedIgnore = diag.Code{Name: "unused-ignore", Severity: diag.Info, Doc: `An ignore pattern matches no file and no folder of the source tree.

A pattern with a typing error leaves nothing out, and what it was meant for is read and
published. This is for your information, and never refuses a tree, also under
--warnings-as-errors: settings that several trees share have patterns for each of them, and a
pattern may stand for files that come and go. A watch notices at each look at the whole tree.`}
)
