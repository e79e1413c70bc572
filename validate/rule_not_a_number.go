package validate

import (
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var notANumber = &Rule{
	Code: "not-a-number",
	Doc: `A number is NaN or infinite.

The constraints of the API let NaN through, since it is neither too small nor too
large. Envoy 1.40.0 ends with std::terminate on a healthy_panic_threshold of NaN
while it runs, and never finishes its start with one; elsewhere comparisons go
wrong without a word.`,
	Node: func(p *Pass, n *xds.Node) {
		m := n.Message.ProtoReflect()
		for _, fd := range floatFields(m.Descriptor()) {
			if !m.Has(fd) {
				continue
			}
			check := func(v protoreflect.Value, path func() xds.Path) {
				if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
					p.Report(Finding{Path: path(), Message: fmt.Sprintf("%s is %v", fd.Name(), f), Help: "give a finite number"})
				}
			}
			path := func() xds.Path { return n.Path().Field(string(fd.Name())) }
			if !fd.IsList() {
				check(m.Get(fd), path)
				continue
			}
			list := m.Get(fd).List()
			for i := range list.Len() {
				check(list.Get(i), func() xds.Path { return path().Index(i) })
			}
		}
	},
}

// floatFields are the fields of md that hold floating point numbers. The answer
// is kept: most messages have none, and every message asks.
func floatFields(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := floatsOf.Load(md); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var fields []protoreflect.FieldDescriptor
	for i := range md.Fields().Len() {
		switch fd := md.Fields().Get(i); fd.Kind() {
		case protoreflect.DoubleKind, protoreflect.FloatKind:
			fields = append(fields, fd)
		}
	}
	floatsOf.Store(md, fields)
	return fields
}

var floatsOf sync.Map // protoreflect.MessageDescriptor → []protoreflect.FieldDescriptor
