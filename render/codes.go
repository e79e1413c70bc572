package render

import "xdspub/diag"

// Codes are the codes of the findings of this package, sorted by name.
var Codes = []diag.Code{codeFolderCollision, codeNumberInYAML, codeUnencodable}

var (
	codeFolderCollision = diag.Code{Name: "folder-collision", Doc: `Two resource names differ only in letter case.

Each route configuration, endpoint assignment, secret, runtime layer and
extension config gets a folder named after it. On a file system that does not
tell upper from lower case the two would overwrite each other.`}

	codeNumberInYAML = diag.Code{Name: "number-in-yaml", Doc: `A number would become text when published as YAML.

Envoy's YAML reader makes a text of every number but whole ones of 32 bits: of
1.5, 1e3 and 3000000000. In a field with a type it becomes a number again. In a
google.protobuf.Struct, such as filter metadata, a JSON access log format or a
TypedStruct, it stays a text, without a word or a counter. JSON and the two
protobuf formats carry it.`}

	codeUnencodable = diag.Code{Name: "unencodable-resource", Doc: `A resource can't be written in the output format.

It was read, but has no form in the format that is published: a string in it is
no valid UTF-8, or an Any holds a type that is not known. Or it was written and
reads back as something else: Envoy would say nothing to that in a binary file.`}
)
