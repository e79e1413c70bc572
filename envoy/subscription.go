package envoy

// Subscription is a path subscription that Envoys may have to one published file.
// A file that two clusters name is two subscriptions.
type Subscription struct {
	File    string // below the output directory, slash-separated
	API     string // CDS, LDS, EDS, RDS, SRDS, SDS, ECDS or RTDS
	Name    string // of the resource; empty for CDS, LDS and SRDS
	Version string // the file's version_info
	// Roots are where its statistics may be, as the functions of this package
	// name them. Any that Envoy has will do: where two connection managers have
	// one route configuration in common, one of them reports.
	Roots []string
}
