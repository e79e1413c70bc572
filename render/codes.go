package render

import "xdspub/diag"

// Codes are the codes of the findings of this package, sorted by name.
var Codes = []diag.Code{codeFolderCollision, codeNumberInYAML, codeUnencodable}

var (
	codeFolderCollision = diag.Code{Name: "folder-collision", Doc: `Two resource names differ only in letter case.

Each route configuration, endpoint assignment, secret, runtime layer and extension config gets a
folder with its name. On a file system that ignores letter case, the two would overwrite each
other.`}

	codeNumberInYAML = diag.Code{Name: "number-in-yaml", Doc: `A number would become text when published as YAML.

Envoy's YAML reader turns every number except 32-bit integers into text: 1.5, 1e3 and 3000000000.
A typed field turns it back into a number. In a google.protobuf.Struct, such as filter metadata, a
JSON access log format or a TypedStruct, it stays text, without an error or a counter. Publish
with --format json or a protobuf format.`}

	codeUnencodable = diag.Code{Name: "unencodable-resource", Doc: `A resource can't be written in the output format.

The resource can't be represented in the output format: a string is not valid UTF-8, or an Any has
an unknown type. Or it was written and reads back as something else, which Envoy would not report
for a binary file.`}
)
