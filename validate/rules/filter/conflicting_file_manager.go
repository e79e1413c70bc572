package filter

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
)

var conflictingFileManager = &validate.Rule{
	Code: "conflicting-file-manager",
	Doc: `Two file managers have the same id and different settings.

The file managers of file_system_buffer, file_server and file system caches belong to the
whole Envoy, one for each id; all without an id are the same. Envoy rejects a second user
whose settings differ ("AsyncFileManager mismatched config").`,
	Collect:  []protoreflect.FullName{asyncFileManager},
	ByName:   true,
	Snapshot: reportConflicts,
}
