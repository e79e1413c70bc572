package validate

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

var durationRange = &Rule{
	Code: "duration-range",
	Doc: `A duration is negative, or longer than Envoy takes.

Envoy refuses every duration below zero ("Expected positive duration") and from
9223372036 s on ("Duration out-of-range"), wherever it stands. Protobuf itself
would allow both. A text proto and a binary file can hold nanoseconds over 999999999,
which Envoy refuses as well.`,
	Messages: []protoreflect.FullName{"google.protobuf.Duration"},
	Node: func(p *Pass, n *xds.Node) {
		d := n.Message.(*durationpb.Duration)
		if nanos := d.GetNanos(); nanos > maxNanos {
			p.Report(Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("duration of %d nanos is out of range", nanos),
				Help:    "nanos go up to 999999999, whole seconds stand in seconds",
			})
		} else if !inDurationRange(d) {
			p.Report(Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("duration %s is out of range", durationText(d)),
				Help:    "Envoy takes 0s up to 9223372035.999999999s, some 292 years",
			})
		}
	},
}

// maxNanos are the most nanoseconds beside the seconds of a duration.
const maxNanos = 999999999

func inDurationRange(d *durationpb.Duration) bool {
	const limit = 9223372036 // the nanoseconds fit an int64
	return d.GetSeconds() >= 0 && d.GetNanos() >= 0 && d.GetNanos() <= maxNanos && d.GetSeconds() < limit
}

func durationText(d *durationpb.Duration) string {
	return strconv.FormatFloat(float64(d.GetSeconds())+float64(d.GetNanos())/1e9, 'f', -1, 64) + "s"
}
