package envoy

// Subscription is a path subscription that Envoys may have to one published file.
// A file that two clusters name is two subscriptions.
type Subscription struct {
	File    string // below the output directory, slash-separated
	API     string // CDS, LDS, EDS, RDS, SRDS, SDS, ECDS or RTDS
	Name    string // of the resource; empty for CDS, LDS and SRDS
	Version string // the file's version_info
	// Roots are where its statistics may be, as the functions of this package
	// name them. Each that Envoy has will do: where two
	// connection managers have one route configuration in common, the one that was
	// first reports, and goes on to when it is gone.
	Roots []string
	// Via are the files of which one leads Envoy to it: those that a bootstrap
	// names. An Envoy whose bootstrap names none of them has no such subscription.
	// Empty is any Envoy.
	Via []string
	// Standing tells that the file does not move in this round. Then it is enough
	// to run its version, whenever that was read.
	Standing bool
}
