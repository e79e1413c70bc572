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

Envoy rejects every duration below zero ("Expected positive duration") and from
9223372036 s on ("Duration out-of-range"), in any field. Protobuf itself allows both. Text
and binary proto files can also hold more than 999999999 nanoseconds, which Envoy rejects.`,
	Messages: []protoreflect.FullName{"google.protobuf.Duration"},
	Node: func(p *validate.Pass, n *xds.Node) {
		d := n.Message.(*durationpb.Duration)
		if nanos := d.GetNanos(); nanos > facts.MaxNanos {
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("duration of %d nanos is out of range", nanos),
				Help:    "write at most 999999999 nanos, and whole seconds in seconds",
			})
		} else if !facts.InDurationRange(d) {
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("duration %s is out of range", facts.DurationText(d)),
				Help:    "write a duration from 0s to 9223372035.999999999s (292 years)",
			})
		}
	},
}
