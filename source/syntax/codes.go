package syntax

import "xdspub/diag"

// The codes of findings about a text. Packages that read more of the text report some of them too.
var (
	CodeDuplicateKey = diag.Code{Name: "duplicate-key", Doc: `A mapping has a duplicate key.

Envoy keeps the last of the two without an error, or a random one if one is in snake_case and one
in camelCase. With two "resources:" lists in one file the first is lost (Envoy issue 16697).`}

	CodeInvalidUTF8 = diag.Code{Name: "invalid-utf8", Doc: `A file is not valid UTF-8.

Protobuf strings are UTF-8. Envoy's YAML parser accepts other bytes in names and headers, which
then match nothing. In a text proto, Envoy accepts escapes that do not produce UTF-8 (a warning), but
not in a message inside an Any, such as a typed_config: it can't unpack that message.`}

	CodeInvalidValue = diag.Code{Name: "invalid-value", Doc: `A value has the wrong type or format for its field.

The type is wrong (an object instead of a list, a number or an unquoted yes instead of text), the
text can't be parsed (a duration, base64), or two fields of a oneof are set. Envoy rejects the
whole file for some of these, and guesses the meaning of others; a source tree must leave nothing
to guess.`}

	CodeSyntax = diag.Code{Name: "invalid-syntax", Doc: `A file is not valid YAML, JSON, text proto or binary proto.

Envoy counts update_failure and keeps its configuration until it restarts: then it starts without
these resources.`}

	CodeTooLarge = diag.Code{Name: "too-large", Doc: `A file, or what its YAML aliases expand to, is too large.

Nested YAML aliases can turn a few lines into gigabytes. The limit is 128 MiB for a file and for a
document with its aliases expanded, and 20,000,000 lines, commas and brackets for a file; 600,000
for a YAML document that is not a plain list of resources.`}

	CodeUnknownDocument = diag.Code{Name: "unknown-document", Doc: `A document is not an xDS resource.

A document must be a resource with an @type, a list of them, a DiscoveryResponse, or a Bootstrap,
whose static_resources xdspub reads. For a file of another program, such as a Kubernetes object, a
Compose file or the values of a Helm chart, the finding says what it is. To skip this file, list it
under ignore: in xdspub.yaml.`}
)
