package render

import "xdspub/diag"

// Codes are the findings of this package, sorted by name.
var Codes = []diag.Code{codeFolderCollision, codeUnencodable}

var (
	codeFolderCollision = diag.Code{Name: "folder-collision", Doc: `Two resource names differ only by letter case.

Each route configuration, endpoint assignment, secret, runtime layer and
extension config gets a folder named after it. On a file system that does not
tell upper from lower case the two would overwrite each other.`}

	codeUnencodable = diag.Code{Name: "unencodable-resource", Doc: `A resource can't be written.

It was read, but has no JSON form: a string in it is no valid UTF-8, or an Any
holds a type that is not known.`}
)
