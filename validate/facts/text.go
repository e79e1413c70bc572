package facts

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
)

// Quoted lists names for a person, not more than fit a line or two.
func Quoted(names []string) string {
	const most = 8
	var b strings.Builder
	for i, name := range names {
		if i == most {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(name))
	}
	return b.String()
}

// PortAtEnd matches the colon and the port at the end of a host.
var PortAtEnd = regexp.MustCompile(`:[0-9]+$`)

// LowerASCII is how Envoy compares domains: é and É are two.
func LowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// MaxNanos are the most nanoseconds beside the seconds of a duration.
const MaxNanos = 999999999

// InDurationRange reports whether Envoy takes a duration: not below zero, its nanoseconds an
// int64.
func InDurationRange(d *durationpb.Duration) bool {
	const limit = 9223372036 // the nanoseconds fit an int64
	return d.GetSeconds() >= 0 && d.GetNanos() >= 0 && d.GetNanos() <= MaxNanos && d.GetSeconds() < limit
}

// DurationText writes a duration as JSON does.
func DurationText(d *durationpb.Duration) string {
	return strconv.FormatFloat(float64(d.GetSeconds())+float64(d.GetNanos())/1e9, 'f', -1, 64) + "s"
}

// KeepOne is the help where two settings exclude each other.
const KeepOne = "keep one of them"
