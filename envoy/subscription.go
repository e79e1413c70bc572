package envoy

import "time"

// Subscription is a path subscription that Envoys may have to one published file.
// A file that two clusters name is two subscriptions.
type Subscription struct {
	File    string // below the output directory, slash-separated
	API     string // CDS, LDS, EDS, RDS, SRDS, SDS, ECDS or RTDS
	Name    string // of the resource; empty for CDS, LDS and SRDS
	Version string // the file's version_info
	// StatPrefixes are those that its statistics may have, as the functions of this
	// package return them. Any one that Envoy has is enough: where two connection
	// managers share one route configuration, Envoy keeps its statistics under the
	// stat_prefix of the first, even when that connection manager is gone.
	StatPrefixes []string
	// Entrypoints are files that bootstraps name: an Envoy has the subscription only if
	// its bootstrap names one of them. Empty means that every Envoy has it.
	Entrypoints []string
	// Unmoved means that this step does not move the file. Then it is enough that the
	// Envoy runs its version, whenever it read that.
	Unmoved bool
	// Changed is when the file or the folder that it is in last changed before the step, by the
	// clock of this machine: Envoy may have read what somebody wrote there by hand, and have
	// refused it. Zero means that nobody but the steps changes it.
	Changed time.Time
}
