package load

import "xdspub/diag"

// Codes are the codes of the findings of this package, sorted by name.
var Codes = []diag.Code{
	codeDuplicateKey, codeEmptyFile, codeIgnoredFile, codeSyntax, codeInvalidUTF8, codeInvalidValue, codeMissingFile, codeNoResponse,
	codeOutside, codeReadOtherwise, codeResourceWrapper, codeTooLarge, codeUnknownDocument, codeUnknownEnum, codeUnknownField, codeUnknownType,
}

var (
	codeDuplicateKey = diag.Code{Name: "duplicate-key", Doc: `A mapping has a duplicate key.

Envoy takes the last of the two without a word, or a random one where one is
written in snake_case and one in camelCase. Two "resources:" lists in one file
lose the first (envoy issue 16697).`}

	codeEmptyFile = diag.Code{Name: "empty-file", Doc: `A resource file is empty.

Envoy refuses an empty YAML file, and takes an empty .pb file or "{}" as an order
to remove everything. An empty file in a source tree is mostly a half-finished
save or a failed template.`}

	codeIgnoredFile = diag.Code{Name: "ignored-file", Severity: diag.Warning, Doc: `A file looks like resources, but its suffix keeps it from being read.

A resource file ends in ` + Suffixes() + `.
A file such as cds.yaml.bak or cluster.conf would silently be missing.`}

	codeInvalidUTF8 = diag.Code{Name: "invalid-utf8", Doc: `A file is not valid UTF-8.

Protobuf strings are UTF-8. Envoy's YAML parser lets other bytes through, into
names and headers that then match nothing.`}

	codeInvalidValue = diag.Code{Name: "invalid-value", Doc: `A value has the wrong type or format for its field.

The kind is wrong (an object where a list is wanted, a number or a bare yes where
text is wanted), the text can't be read (a duration, base64), or two fields of
which one may be set are set both. Envoy refuses some of these with the whole
file and guesses at others; a source tree must leave nothing to guess.`}

	codeMissingFile = diag.Code{Name: "missing-file", Doc: `A file that a resource names by a relative path can't be read.

What a resource names by a relative path, such as a certificate, stands in the
source tree and is put into the resource, so that Envoy gets both in one step. The
path starts at the file that names it. Envoy itself would look below its working
directory, and refuse the resource when the file is missing.`}

	codeNoResponse = diag.Code{Name: "no-response", Doc: `A file that Envoy subscribes to is not a DiscoveryResponse.

Of a bare resource Envoy sees unknown fields, drops them, and takes what is left for
an order to remove all clusters or listeners: a success. A list or a single value is
an update_failure.`}

	codeOutside = diag.Code{Name: "outside-tree", Doc: `A link or relative path leads out of the source tree.

Who may change the tree could have files read, and published, that only this program
may read. Links and relative paths are followed inside the tree, and into the folders
that --allow-path names, which the tree's own settings file can't.`}

	codeReadOtherwise = diag.Code{Name: "read-otherwise", Doc: `Envoy's parser reads a value differently from how it is written.

This is about files that Envoy reads itself; in a source tree all of it works. Of
several YAML documents Envoy reads the first. It has no merge keys (<<): the key
is dropped as an unknown field. Numbers such as 0o10, 0b11 and 1_000 are text to it,
and lose the whole file where a number is wanted; so do durations such as .5s, 1.s
and +1s, and a JSON file with a byte order mark. Inside a Struct of a YAML file,
fractions and numbers that don't fit 32 bits arrive as text; that is a warning.`}

	codeResourceWrapper = diag.Code{Name: "resource-wrapper", Doc: `A Resource wrapper is invalid, or has fields that files do not support.

Envoy does not compare the wrapper's name with the inner one, ignores ttl in
files, and makes an empty resource of a wrapper without one (a cluster named "").
Dynamic parameter constraints choose between resources per client; a file has no
client.`}

	codeSyntax = diag.Code{Name: "invalid-syntax", Doc: `A file is not valid YAML, JSON, text proto or binary proto.

Envoy counts update_failure and keeps what it has, until it restarts: then it
comes up without these resources.`}

	codeTooLarge = diag.Code{Name: "too-large", Doc: `A file, or what its YAML aliases expand to, is too large.

Nested YAML aliases can make gigabytes of a few lines. The limit is 128 MiB for a
file and for the expanded form of a document, and 20,000,000 lines, commas and brackets
for a file; 600,000 for a YAML document that is no plain list of resources.`}

	codeUnknownDocument = diag.Code{Name: "unknown-document", Doc: `A document is not an xDS resource.

A document is a resource with an @type, a list of them, a DiscoveryResponse, or a
Bootstrap whose static_resources are taken over. Of a file for another program, such
as an object of Kubernetes, a Compose file or values of a Helm chart, the finding says
what it is. To skip it, list it under ignore: in xdspub.yaml.`}

	codeUnknownEnum = diag.Code{Name: "unknown-enum-value", Doc: `An enum has no value of this name.

In a file that Envoy subscribes to, it takes the enum's zero value instead and counts
server.dynamic_unknown_fields: type: STRICT_DSN is STATIC, health_status: UNHEALHTY is
healthy. With one in its bootstrap it does not start, and a text proto it refuses
whole. In a source tree it is an error.`}

	codeUnknownField = diag.Code{Name: "unknown-field", Doc: `A message has no field of this name.

In a file that Envoy subscribes to, it drops the field and counts
server.dynamic_unknown_fields; the update is a success and the setting is not in
effect. With one in its bootstrap it does not start, and a text proto it refuses whole;
only there, names that the API has reserved are passed over. In a source tree it is an
error. Mostly a typing error, or a wrong indentation.`}

	codeUnknownType = diag.Code{Name: "unknown-type", Doc: `An @type names a type that Envoy does not have.

"could not find @type" loses the whole file, however deep in a resource the type
stands. v2 types, types of contrib extensions and types that the released binary
leaves out count among them, and so does a type URL without a host.`}
)
