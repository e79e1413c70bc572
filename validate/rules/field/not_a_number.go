package field

import (
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var notANumber = &validate.Rule{
	Code: "not-a-number",
	Doc: `A number is NaN or infinite.

The constraints of the API do not exclude NaN. It is an error in percentages that Envoy
rounds ("Value not in the range of 0..100 range."), in a healthy_panic_threshold, where an
update with NaN crashes a running Envoy (std::terminate), and in a
per_upstream_preconnect_ratio, where every request hangs. In other fields Envoy accepts NaN
and infinity, and compares wrongly: a warning.`,
	Wants: func(md protoreflect.MessageDescriptor) bool { return len(floatFields(md)) > 0 },
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.ProtoReflect()
		for _, fd := range floatFields(m.Descriptor()) {
			if !m.Has(fd) {
				continue
			}
			check := func(v protoreflect.Value, path func() xds.Path) {
				if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) && keepsConstraints(n) {
					p.Report(validate.Finding{
						Path: path(), Message: fmt.Sprintf("%s is %v", fd.Name(), f), Help: "write a finite number",
						Warning: !p.Envoy.RefusesNaN(n.Field()),
					})
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

// keepsConstraints reports whether the node's message keeps all its constraints. If a number breaks a constraint,
// field-constraint reports it. The constraints of a wrapper belong to the message around the wrapper, so
// keepsConstraints judges this message, too.
func keepsConstraints(n *xds.Node) bool {
	for _, at := range []*xds.Node{n, n.Parent} {
		if at == nil {
			break
		}
		if xds.Constraints(at.Message) != nil {
			return false
		}
	}
	return true
}

// floatFields returns the floating-point fields of a message type. It caches them, because the rule asks once for
// each message.
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

var floatsOf sync.Map // maps protoreflect.MessageDescriptor to []protoreflect.FieldDescriptor
