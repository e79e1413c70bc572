package envoy

import (
	"fmt"

	"xdspub/diag"
)

// DownError means that no Envoy runs at the URL: nothing listens, or the connection was closed.
type DownError struct {
	URL string
	Err error
}

func (e *DownError) Error() string { return fmt.Sprintf("envoy %s: is down: %v", e.URL, e.Err) }

// Unwrap returns the cause.
func (e *DownError) Unwrap() error { return e.Err }

// TimeoutError means that a process at the URL accepts connections, and does not answer in time.
type TimeoutError struct {
	URL string
	Err error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("envoy %s: does not answer: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Err }

// UnexpectedResponseError means that no admin interface of an Envoy answers like this, or that this process may not
// open the Unix socket.
type UnexpectedResponseError struct {
	URL  string
	Path string // of the request
	Saw  string // the answer
}

func (e *UnexpectedResponseError) Error() string {
	return fmt.Sprintf("envoy %s: is not the admin interface of an Envoy: %s returned %s; want the address of admin in Envoy's bootstrap",
		e.URL, e.Path, e.Saw)
}

// ForbiddenError means that admin.allow_paths of the bootstrap does not allow a path.
type ForbiddenError struct {
	URL  string
	Path string // of the request
	// Query reports whether the request has a query, which Envoy compares as part of the path.
	Query bool
}

func (e *ForbiddenError) Error() string {
	matcher := fmt.Sprintf("{exact: %s}", e.Path)
	if e.Query {
		matcher = fmt.Sprintf("{prefix: '%s?'}", e.Path)
	}
	return fmt.Sprintf("envoy %s: admin.allow_paths of its bootstrap refuses %s: add %s there and restart Envoy, or write the "+
		"bootstrap by xdspub bootstrap envoy --admin-paths needed", e.URL, e.Path, matcher)
}

// UnstableError means that several processes answer at one address.
type UnstableError struct {
	URL string
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("envoy %s: another process answers each time: if this is a load balancer in front of several Envoys, give "+
		"each of them its own --envoy-admin; if it is one Envoy, it keeps restarting, and its log says why", e.URL)
}

// StatsExcludedError means that the stats_matcher of an Envoy's bootstrap excludes statistics that show whether
// Envoy accepts a file.
type StatsExcludedError struct {
	URL   string
	Stats []string // names of statistics, or stat prefixes
}

func (e *StatsExcludedError) Error() string {
	return fmt.Sprintf("envoy %s: the stats_matcher of its bootstrap excludes %s, and only these show whether it applied a file: include %s",
		e.URL, diag.Few(e.Stats, mostNames), neededStats)
}

// NotSubscribedError means that the bootstrap of an Envoy subscribes to no file of the output directory.
type NotSubscribedError struct {
	URL   string
	Dir   string   // the output directory as Envoys see it
	Reads []string // Bootstrap.Paths
}

func (e *NotSubscribedError) Error() string {
	reads := "no files"
	if len(e.Reads) > 0 {
		reads = diag.Clip(diag.Few(e.Reads, mostNames), diag.MaxText)
	}
	return fmt.Sprintf("envoy %s: reads no file below %s: its bootstrap names %s; if Envoy sees the output directory at another path, "+
		"set --envoy-path", e.URL, e.Dir, reads)
}
