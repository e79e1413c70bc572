package field

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var durationRange = &validate.Rule{
	Code: "duration-range",
	Doc: `A duration is negative or too long.

Envoy refuses every duration below zero ("Expected positive duration") and from
9223372036 s on ("Duration out-of-range"), wherever it stands. Protobuf itself
would allow both. A text proto and a binary file can hold nanoseconds over 999999999,
which Envoy refuses as well.`,
	Messages: []protoreflect.FullName{"google.protobuf.Duration"},
	Node: func(p *validate.Pass, n *xds.Node) {
		d := n.Message.(*durationpb.Duration)
		if nanos := d.GetNanos(); nanos > facts.MaxNanos {
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("duration of %d nanos is out of range", nanos),
				Help:    "nanos go up to 999999999, whole seconds stand in seconds",
			})
		} else if !facts.InDurationRange(d) {
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("duration %s is out of range", facts.DurationText(d)),
				Help:    "Envoy takes 0s up to 9223372035.999999999s, some 292 years",
			})
		}
	},
}
