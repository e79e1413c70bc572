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

// newest is the newest release of a fleet.
func (v *Version) newest() release {
	if len(v.fleet) > 0 {
		return v.fleet[len(v.fleet)-1].release
	}
	return v.release
}
