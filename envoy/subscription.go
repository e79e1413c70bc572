package envoy

import "time"

// Subscription is a path subscription that Envoys may have to a published file. A file that two clusters name
// has two subscriptions.
type Subscription struct {
	File    string // below the output directory, slash-separated
	API     string // CDS, LDS, EDS, RDS, SRDS, SDS, ECDS or RTDS
	Name    string // of the resource; empty for CDS, LDS and SRDS
	Version string // the file's version_info
	// StatPrefixes are the possible prefixes of the subscription's statistics, as the functions of this
	// package return them. One prefix that Envoy has suffices: if two connection managers share a route
	// configuration, Envoy keeps its statistics under the stat_prefix of the first, even after that connection
	// manager is gone.
	StatPrefixes []string
	// Entrypoints are files in bootstraps: an Envoy has the subscription only if its bootstrap names one of
	// these files. Empty means that every Envoy has the subscription.
	Entrypoints []string
	// Unmoved means that this step does not move the file. It suffices then that the Envoy runs the file's
	// version, even if the Envoy read the version before the step.
	Unmoved bool
	// Changed is the time of the last change of the file or its folder before the step, by the clock of this
	// machine: Envoy may have read, and refused, an edit by hand. Zero means that only steps change the file.
	Changed time.Time
}
