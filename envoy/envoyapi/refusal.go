package envoyapi

import (
	_ "embed"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:embed refused-since.txt
var refusedSinceText string

// refusedSince maps the code of a rule, or a sub-code, to the first release that refuses what the rule finds.
var refusedSince = sync.OnceValue(func() map[string]release {
	since := make(map[string]release)
	for line := range strings.Lines(refusedSinceText) {
		if words := strings.Fields(line); words[0] != "#" {
			since[words[1]] = releaseOf(words[0])
		}
	}
	return since
})

// StillTakes reports whether each Envoy of the version accepts what a rule finds under a code or sub-code, and
// returns the first release that refuses it.
func (v *Version) StillTakes(subCode string) (before string, takes bool) {
	since, ok := refusedSince()[subCode]
	if !ok || v.newest() >= since {
		return "", false
	}
	return since.String(), true
}

// ConstrainedLater reports whether no Envoy of the version has the present constraint of a field, and returns the
// release that brought the constraint.
func (v *Version) ConstrainedLater(field protoreflect.FullName) (since string, later bool) {
	by := newIn().constraints[field]
	return by.String(), by > v.newest()
}

// Requires reports whether some Envoy of the version refuses a message in which a field is empty, and returns the
// first release that accepts it.
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

// The first releases that read a configuration in another way.
const (
	regexesAreBytes      = release(1039)
	templatesMixSegments = release(1039)
	anyAdditionalAddress = release(1038)
)

// AdditionalAddressesNeedIP reports whether some Envoy of the version refuses an endpoint with additional addresses
// unless they and the endpoint's address are IP addresses. It returns the first release that accepts other
// addresses.
func (v *Version) AdditionalAddressesNeedIP() (since string, needIP bool) {
	return v.lacks(anyAdditionalAddress)
}

// RegexesAreBytes reports whether some Envoy of the version compiles regular expressions in Latin-1.
func (v *Version) RegexesAreBytes() bool { return v.newest() >= regexesAreBytes }

// RegexesAreUTF8 reports whether some Envoy of the version compiles regular expressions in UTF-8.
func (v *Version) RegexesAreUTF8() bool { return v.release < regexesAreBytes }

// TemplatesMixSegments reports whether each Envoy of the version accepts a name in a path template beside other
// characters of its segment, as in /v{version}.
func (v *Version) TemplatesMixSegments() bool { return v.release >= templatesMixSegments }

// newest returns the newest release of a Fleet, or the release of another version.
func (v *Version) newest() release {
	if len(v.fleet) > 0 {
		return v.fleet[len(v.fleet)-1].release
	}
	return v.release
}
