package field

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

var newerThanEnvoy = &validate.Rule{
	Code: "newer-than-envoy",
	Doc: `A field or an enum value is newer than the Envoy of --envoy-version.

That Envoy rejects a bootstrap with a field that it does not know, also if the field is false, 0 or
null. In files and streams it ignores the field, or the name of an enum value, and only counts it
(server.dynamic_unknown_fields): the setting is not in effect. If versions are mixed, the oldest one
decides.

A type of an extension that is newer is reported as unknown-type, an extension that is newer than
its type as misplaced-extension.`,
	MessagesOf: (*envoyapi.Version).HasNewer,
	Node: func(p *validate.Pass, n *xds.Node) {
		n.Message.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			path := n.Path().Field(string(fd.Name()))
			if since, lacks := p.Envoy.Lacks(fd.FullName()); lacks {
				reportNewer(p, path, string(fd.Name()), since)
				return true
			}
			switch {
			case fd.Enum() == nil:
			case fd.IsList():
				for i := range v.List().Len() {
					checkValue(p, path.Index(i), fd, v.List().Get(i).Enum())
				}
			default:
				checkValue(p, path, fd, v.Enum())
			}
			return true
		})
	},
	Resource: func(p *validate.LookupPass) {
		for _, u := range p.Resource.Unset {
			if since, lacks := p.Envoy.Lacks(u.Field); lacks {
				reportNewer(&p.Pass, u.Path, string(u.Field.Name()), since)
			}
		}
	},
}

func checkValue(p *validate.Pass, path xds.Path, fd protoreflect.FieldDescriptor, number protoreflect.EnumNumber) {
	value := fd.Enum().Values().ByNumber(number)
	if value == nil {
		return
	}
	if since, lacks := p.Envoy.LacksValue(value); lacks {
		reportNewer(p, path, fmt.Sprintf("%s %s", fd.Name(), value.Name()), since)
	}
}

func reportNewer(p *validate.Pass, path xds.Path, what, since string) {
	p.Report(validate.Finding{
		Path: path, Eager: true,
		Message: fmt.Sprintf("%s is unknown to Envoy %s: it came with %s", what, p.Envoy.Before(since), since),
		Help:    "remove it, or raise --envoy-version once no older Envoy is left",
	})
}
