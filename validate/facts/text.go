package facts

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
)

// Quoted returns the names in quotes, separated by commas. Of more than eight names it returns the first eight.
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

// LowerASCII lowers ASCII letters only, as Envoy does when it compares domains: É and é stay different.
func LowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// MaxNanos is the largest value of the field nanos in a duration.
const MaxNanos = 999999999

// InDurationRange reports whether Envoy accepts a duration: it is not negative, nanos is at most MaxNanos, and the
// whole is below 9223372036 seconds.
func InDurationRange(d *durationpb.Duration) bool {
	const limit = 9223372036 // the largest number of seconds whose nanoseconds fit an int64
	return d.GetSeconds() >= 0 && d.GetNanos() >= 0 && d.GetNanos() <= MaxNanos && d.GetSeconds() < limit
}

// DurationText returns a duration in the form that JSON has, such as 1.5s.
func DurationText(d *durationpb.Duration) string {
	return strconv.FormatFloat(float64(d.GetSeconds())+float64(d.GetNanos())/1e9, 'f', -1, 64) + "s"
}

// KeepOne is the help of a finding about two settings that exclude each other.
const KeepOne = "keep one of them"
