package envoyapi

import (
	_ "embed"
	"strings"
	"sync"
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

// Releases since which Envoy reads texts otherwise.
const (
	regexesAreBytes      = release(1039)
	templatesMixSegments = release(1039)
)

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
