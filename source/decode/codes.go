package decode

import (
	"xdspub/diag"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// Codes are the codes of the findings about a source tree, sorted by name.
var Codes = []diag.Code{
	codeBootstrapRest, syntax.CodeDuplicateKey, codeEmptyFile, codeIgnoredFile, syntax.CodeSyntax, syntax.CodeInvalidUTF8,
	syntax.CodeInvalidValue, settingsfile.CodeInvalidWhen, codeMissingFile,
	codeNoResponse, CodeOutside, codeReadOtherwise, codeResourceWrapper, syntax.CodeTooLarge, syntax.CodeUnknownDocument,
	codeUnknownEnum, codeUnknownField, codeUnknownType, CodeUnreadable,
}

var (
	codeBootstrapRest = diag.Code{Name: "bootstrap-rest", Severity: diag.Warning, Doc: `A source tree has a bootstrap that says more than its static resources.

xdspub reads the listeners, clusters and secrets of static_resources from it. What else it says, such
as node, admin, stats_sinks or layered_runtime, reaches no Envoy: it belongs into the bootstrap that
Envoy is started with. xdspub import makes a source tree of such a file, and a bootstrap of the rest.
If the file is that bootstrap, list the file under ignore: in xdspub.yaml.`}

	codeEmptyFile = diag.Code{Name: "empty-file", Doc: `A resource file is empty.

Envoy rejects an empty YAML file, and reads an empty .pb file or "{}" as an order to remove
everything. An empty file in a source tree is usually an unfinished save or a failed template.`}

	codeIgnoredFile = diag.Code{Name: "ignored-file", Severity: diag.Warning, Doc: `A file looks like resources, but its suffix keeps it from being read.

A resource file ends in ` + syntax.Suffixes() + `.
A file such as cds.yaml.bak or cluster.conf would silently be missing.`}

	codeMissingFile = diag.Code{Name: "missing-file", Doc: `A file that a resource names by a relative path can't be read.

xdspub reads a file that a resource names by a relative path, such as a certificate, from the
source tree, and inlines it, so that Envoy gets both in one step. The path starts at the file that
contains it. Envoy itself would start at its working directory, and reject the resource if the
file is missing.

An error of the disk or of the system, such as an I/O error, is no finding: validate and render exit
with 3, and watch and serve try again.`}

	codeNoResponse = diag.Code{Name: "no-response", Doc: `A file that Envoy subscribes to is not a DiscoveryResponse.

In a file with a bare resource Envoy sees unknown fields, ignores them, and reads the rest as an
order to remove all clusters or listeners, which it counts as a success. A list or a single value
is an update_failure. Write a DiscoveryResponse: {"resources": [{"@type": …}, …]}.`}

	// CodeOutside is the code of an OutsideError.
	CodeOutside = diag.Code{Name: "outside-tree", Doc: `A link or relative path leads out of the source tree.

Whoever can change the tree could otherwise have xdspub read and publish any file that it can
read. xdspub follows links and relative paths inside the tree, and into the folders of
--allow-path, which the tree's own settings file can't set.`}

	codeReadOtherwise = diag.Code{Name: "read-otherwise", Doc: `Envoy's parser reads a value differently from how it is written.

These faults concern files that Envoy reads; in a source tree, such files work. Envoy reads only
the first YAML document of a file. It has no merge keys (<<), and ignores them as unknown fields.
It reads numbers such as 0o10, 0b11 and 1_000 as text, and rejects the whole file if a number is
needed; the same goes for durations such as .5s, 1.s and +1s, and for a JSON file with a byte
order mark. In a Struct of a YAML file it reads fractions and numbers beyond 32 bits as text (a
warning).`}

	codeResourceWrapper = diag.Code{Name: "resource-wrapper", Doc: `A Resource wrapper is invalid, or has fields without an effect in files.

Envoy does not compare the wrapper's name with the resource's name, ignores ttl in files, and
creates an empty resource (a cluster named "") from a wrapper without one. Dynamic parameter
constraints select resources for each client; a file has no client.`}

	codeUnknownEnum = diag.Code{Name: "unknown-enum-value", Doc: `An enum has no value of this name.

In a file that Envoy subscribes to, it uses the enum's zero value instead and counts
server.dynamic_unknown_fields: type: STRICT_DSN becomes STATIC, health_status: UNHEALTY becomes
healthy. With such a name in its bootstrap it does not start, and it rejects a text proto as a
whole. In a source tree it is an error.`}

	// CodeUnreadable is the code of a file in the folder of an owner that can't be read.
	CodeUnreadable = diag.Code{Name: "unreadable-file", Doc: `A file or directory of an owner (the setting owners) can't be read.

The permissions forbid it, a link leads nowhere, or the disk has an error. The folder of the owner
keeps its last valid resources. Outside of the folders of owners this is no finding: validate and
render exit with 3, and watch and serve try again.`}

	codeUnknownField = diag.Code{Name: "unknown-field", Doc: `A message has no field of this name.

Usually this is a misspelt name or a wrong indentation. In a file that Envoy subscribes to, it
ignores the field and counts server.dynamic_unknown_fields: the update succeeds without the
setting. With an unknown field in its bootstrap it does not start, and it rejects a text proto as a
whole; only there it skips names that the API has reserved. In a source tree it is an error.`}

	codeUnknownType = diag.Code{Name: "unknown-type", Doc: `An @type names a type that Envoy does not have.

Envoy rejects the whole file ("could not find @type"), however deep in a resource the type is used:
types of the v2 API, of contrib extensions, others that the released binary does not contain, and a
type URL without a host.`}
)
