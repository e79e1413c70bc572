// Package validate is the engine that judges a Snapshot by rules. A rule is a Rule value; package
// rules has all of them. Run walks every resource once, and hands each message to the rules that
// asked for its type. A Judge does the same for one Snapshot after another, and keeps what it
// found.
//
// The package knows messages and references, but neither files, encodings nor printing: the
// Origin of a resource says where a finding stands in the source. It has no clock: Options say
// what time it is.
package validate

import (
	"cmp"
	"time"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// Options for Run; the zero value judges by all rules that are not off by default, with
// nothing known beside the Snapshot.
type Options struct {
	// Envoy is the version that is to take the Snapshot; nil means the latest that is known.
	Envoy *envoyapi.Version
	// Profiles are those of the clients that get the Snapshot; empty means EnvoyFile.
	Profiles []Profile
	// BootstrapFacts are the static resources of the Envoy's own bootstrap.
	BootstrapFacts xds.BootstrapFacts
	// Bootstrap is the Envoy's own bootstrap without its static resources, to be
	// judged too; nil where only the Snapshot is.
	Bootstrap *xds.Resource
	// Disable holds the codes of rules that are left out, and sub-codes of which no finding is listed.
	Disable []string
	// Now is the time at which certificates must be valid; zero means that nobody
	// judges that, and the result depends on the Snapshot alone.
	Now time.Time
	// Enable holds the codes of rules that run though they are off by default, and sub-codes that are
	// listed though their rule is off. What is disabled by the same name stays out.
	Enable []string
	// Incomplete are the types of which the client may have resources that the Snapshot lacks: some
	// could not be read, or come over the network. No rule reports that such a resource is missing.
	Incomplete []*xds.Type
	// Variants says that the Snapshot has all variants of its resources: only the rules about
	// these run.
	Variants bool
	// Calls makes a Judge keep the lookups and findings of each call of a rule (Judge.Calls).
	Calls bool
	// Timings gets the time that each rule took; nil measures nothing.
	Timings *Timings
}

func (o Options) envoy() *envoyapi.Version { return cmp.Or(o.Envoy, envoyapi.Latest) }
