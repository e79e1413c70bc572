// Package validate is the engine that judges a Snapshot by rules. A rule is a Rule value; package rules lists
// all of them. Run walks every resource once, and hands each message to the rules for its type. A Judge judges
// one Snapshot after another, and caches its results.
//
// The engine knows messages and references, but neither files, encodings nor printing: the Origin of a
// resource knows the place of a finding in the source. The engine has no clock: Options have the time.
package validate

import (
	"cmp"
	"time"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// Options are the options of Run. The zero value runs all rules that are on by default, for a complete Snapshot and
// an Envoy without a known bootstrap.
type Options struct {
	// Envoy is the release that gets the Snapshot; nil means the latest known release.
	Envoy *envoyapi.Version
	// Profiles are the profiles of the clients that get the Snapshot; empty means EnvoyFile.
	Profiles []Profile
	// BootstrapFacts are the static resources of the Envoy's own bootstrap.
	BootstrapFacts xds.BootstrapFacts
	// Bootstrap is the Envoy's own bootstrap without its static resources. Run judges the bootstrap too,
	// unless nil.
	Bootstrap *xds.Resource
	// Disable holds the codes of rules that are left out, and sub-codes of which no finding is listed.
	Disable []string
	// Now is the time at which certificates must be valid. If Now is zero, no rule judges dates, and the findings
	// depend on the Snapshot alone.
	Now time.Time
	// Enable holds codes of rules that are off by default, and sub-codes of disabled rules. Disable wins over
	// Enable for the same name.
	Enable []string
	// Incomplete lists the types of which the client may have further resources: some files could not be read,
	// or some resources come over the network. No rule reports a missing resource of such a type.
	Incomplete []*xds.Type
	// Variants means that the Snapshot has all variants of its resources. Only rules with OfVariants run.
	Variants bool
	// Calls makes a Judge keep the lookups and findings of each call of a rule (Judge.Calls).
	Calls bool
	// Timings gets the time that each rule took; nil measures nothing.
	Timings *Timings
}

func (o Options) envoy() *envoyapi.Version { return cmp.Or(o.Envoy, envoyapi.Latest) }
