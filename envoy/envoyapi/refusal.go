package envoyapi

import (
	_ "embed"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// What an Envoy does with a configuration differs by its release.

//go:embed refused-since.txt
var refusedSinceText string

// refusedSince has the releases by the codes of rules, or their sub-codes.
var refusedSince = sync.OnceValue(func() map[string]release {
	since := make(map[string]release)
	for line := range strings.Lines(refusedSinceText) {
		if words := strings.Fields(line); words[0] != "#" {
			since[words[1]] = releaseOf(words[0])
		}
	}
	return since
})

// StillTakes reports whether each Envoy of the version takes what a rule finds under a sub-code, and the
// first release that refuses it.
func (v *Version) StillTakes(subCode string) (before string, takes bool) {
	since, ok := refusedSince()[subCode]
	if !ok || v.newest() >= since {
		return "", false
	}
	return since.String(), true
}

// ConstrainedLater reports whether each Envoy of the version takes any value of a field that has a
// constraint now, and the release that brought the constraint.
func (v *Version) ConstrainedLater(field protoreflect.FullName) (since string, later bool) {
	by := newIn().constraints[field]
	return by.String(), by > v.newest()
}

// Requires reports whether some Envoy of the version refuses a message in which a field is empty, and
// the release that takes it first.
func (v *Version) Requires(field protoreflect.FullName) (since string, requires bool) {
	if _, lacks := v.Lacks(field.Parent()); lacks {
		return "", false
	}
	return v.lacks(newIn().optional[field])
}

// RequiresIn reports whether Requires holds for a field of a message.
func (v *Version) RequiresIn(message protoreflect.FullName) bool {
	for field := range newIn().optional {
		if _, requires := v.Requires(field); requires && field.Parent() == message {
			return true
		}
	}
	return false
}

// Releases since which Envoy reads a configuration otherwise.
const (
	regexesAreBytes      = release(1039)
	templatesMixSegments = release(1039)
	anyAddressIsMore     = release(1038)
)

// OnlyIPAddressesAreMore reports whether some Envoy of the version refuses an endpoint with additional
// addresses, of which one or the first is no IP address, and the release that takes it first.
func (v *Version) OnlyIPAddressesAreMore() (since string, only bool) {
	return v.lacks(anyAddressIsMore)
}

// RegexesAreBytes reports whether some Envoy of the version compiles regular expressions in Latin-1.
func (v *Version) RegexesAreBytes() bool { return v.newest() >= regexesAreBytes }

// RegexesAreUTF8 reports whether some Envoy of the version compiles them in UTF-8.
func (v *Version) RegexesAreUTF8() bool { return v.release < regexesAreBytes }

// TemplatesMixSegments reports whether a name in a path template may stand between other characters of
// its segment, as in /v{version}.
func (v *Version) TemplatesMixSegments() bool { return v.release >= templatesMixSegments }

// newest is the newest release of a fleet.
func (v *Version) newest() release {
	if len(v.fleet) > 0 {
		return v.fleet[len(v.fleet)-1].release
	}
	return v.release
}
