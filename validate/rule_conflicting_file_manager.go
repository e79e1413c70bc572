package validate

import (
	"fmt"

	asyncfilesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/async_files/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var conflictingFileManager = &Rule{
	Code: "conflicting-file-manager",
	Doc: `Two file managers of one id have different settings.

The file managers of file_system_buffer, file_server and of caches on disk belong to the
whole Envoy, one for each id, and all without an id are the same. Envoy refuses the
second that differs ("AsyncFileManager mismatched config").`,
	Gather: []protoreflect.FullName{"envoy.extensions.common.async_files.v3.AsyncFileManagerConfig"},
	Snapshot: func(p *Pass) {
		first := make(map[string]Met)
		for _, m := range p.Gathered {
			if unread(m.Node) {
				continue
			}
			id := m.Node.Message.(*asyncfilesv3.AsyncFileManagerConfig).GetId()
			other, again := first[id]
			switch {
			case !again:
				first[id] = m
			case !proto.Equal(m.Node.Message, other.Node.Message):
				p.Report(Finding{
					Resource: m.Resource,
					Path:     m.Node.Path(),
					Message:  fmt.Sprintf("file manager %q has other settings here than in %s", id, other.Resource.Key),
					Help:     "write the same settings in both places, or give one of them an id of its own",
					Related:  related(other.Resource, other.Node.Path(), "the first"),
				})
			}
		}
	},
}
