// Package validate is the engine that judges a Snapshot by rules. A rule is a Rule value,
// as those of package rules; Run walks every resource once and hands each message to the
// rules that asked for its type, and a Judge keeps what it found for the next Snapshot.
// The package knows messages and references, not files, encodings or printing: where a
// finding stands in the source is the resource's Origin's to say, and what time it is
// Options'.
package validate

import (
	"cmp"
	"time"

	"xdspub/envoyapi"
	"xdspub/xds"
)

// Options for Run; the zero value judges by all rules that are not off by default, with
// nothing known beside the Snapshot.
type Options struct {
	// Envoy is the version that is to take the Snapshot; nil means the latest that is known.
	Envoy *envoyapi.Version
	// BootstrapFacts is what the Envoy has from its own bootstrap.
	BootstrapFacts xds.BootstrapFacts
	// Bootstrap is the Envoy's own bootstrap without its static resources, to be
	// judged too; nil where only the Snapshot is.
	Bootstrap *xds.Resource
	// Disable holds the codes of rules that are left out.
	Disable []string
	// Now is the time at which certificates must be valid; zero means that nobody
	// judges that, and the result depends on the Snapshot alone.
	Now time.Time
	// Enable holds the codes of rules that run though they are off by default.
	// What is disabled as well stays out.
	Enable []string
	// Partial says that resources are missing because they could not be read:
	// rules that need the Whole snapshot stay silent, they would only echo that.
	Partial bool
	// Timings, where it is set, is told how long each rule took.
	Timings *Timings
}

func (o Options) envoy() *envoyapi.Version { return cmp.Or(o.Envoy, envoyapi.Latest) }
