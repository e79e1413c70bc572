// Package control is the control socket of a running watch: a Unix socket in its output
// directory that answers HTTP with JSON.
//
//	GET  /v1/watch       the state of the watch: a Watch
//	GET  /v1/clients     whom it serves over the network: a list of clients.Client
//	POST /v1/retry-held  publish once more what Envoy refused: a Result, after the publish
//
// The Server does nothing by itself. It hands a request over, and the watch carries it
// out in its own loop, between two reconciles:
//
//	server := control.New(log)
//	defer server.Close()
//	err := server.Bind(dir.Path()) // again before each reconcile: it costs a stat
//	…
//	case request := <-server.Requests():
//		request.Answer(result)
//
// The socket is for the user that the watch runs as, and for root: it has the mode
// 0600 in a folder of 0700, and a client that can connect may send any request. A client
// that hangs, floods the socket or speaks no HTTP loses its connection, and does not
// disturb the watch.
//
// The caller of Bind must hold the lock of the directory: a socket that is already there
// is then one of a killed watch, and Bind replaces it.
package control

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"xdspub/diag"
)

const (
	folder   = ".xdspub" // of all that is not for Envoy
	socket   = "control.sock"
	unlisted = socket + ".new" // until it can be connected to
	ended    = socket + ".end" // the socket of a watch that has ended; it takes no connections

	watchPath   = "/v1/watch"
	clientsPath = "/v1/clients"
	retryPath   = "/v1/retry-held"
)

// Path returns the path of the socket of an output directory.
func Path(out string) string { return filepath.Join(out, folder, socket) }

// ErrNoWatch means that no process listens on the socket.
var ErrNoWatch = errors.New("no watch is running")

// ErrDied is an ErrNoWatch: there is the socket of a watch that was killed, or whose machine was.
var ErrDied = fmt.Errorf("%w: the last one was killed", ErrNoWatch)

// EndedError is an ErrNoWatch: the last watch has ended by itself, as SIGTERM makes it, and nobody
// has published since.
type EndedError struct{ Time time.Time }

func (e *EndedError) Error() string {
	return fmt.Sprintf("%v: the last one ended at %s", ErrNoWatch, e.Time.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrNoWatch.
func (e *EndedError) Unwrap() error { return ErrNoWatch }

// ErrSilent means that a watch listens on the socket, and does not answer in time.
var ErrSilent = errors.New("no answer")

// ConflictError means that the running watch is not the one that the request describes.
type ConflictError struct{ Reason string }

func (e *ConflictError) Error() string { return e.Reason }

// Watch is the state of a running watch, but for what is on disk, such as the manifest.
type Watch struct {
	PID    int    `json:"pid"`
	Source string `json:"source"` // the source tree, an absolute path
	// Revision is the git commit of the source tree when it was read last, with "+dirty" if the tree
	// differed from that commit; empty if there is none.
	Revision string `json:"revision,omitempty"`
	Out      string `json:"out"` // without symbolic links
	// Envoys are the admin interfaces that the watch asks, as --envoy-admin names them; a path of a Unix
	// socket is absolute.
	Envoys []string  `json:"envoys,omitempty"`
	Since  time.Time `json:"since"`
	// Serves means that it serves clients over the network, too.
	Serves bool `json:"serves"`
	// Snapshot is the id of the published snapshot, empty where there is none. SnapshotSince is when this
	// watch found it published or published it.
	Snapshot      string    `json:"snapshot"`
	SnapshotSince time.Time `json:"snapshot_since,omitzero"`
	// Refused says why the source tree, as it is now, is not published; nil where it is
	// published.
	Refused *Refusal `json:"refused,omitempty"`
	// Certificates are those of the source tree, as it was judged last.
	Certificates Certificates `json:"certificates,omitzero"`
	// Failed is the error of the last reconcile or trim, where it could not run.
	Failed string `json:"failed,omitempty"`
	// Last is the last reconcile that has ended, and Running the one that is under way.
	Last    *Reconcile `json:"last,omitempty"`
	Running *Reconcile `json:"running,omitempty"`
	// NextTrim is the time of the next trim; zero where nothing waits for one.
	NextTrim time.Time `json:"next_trim,omitzero"`
}

// Reconcile is one reading of the source tree, and the publish that follows from it.
type Reconcile struct {
	// Reason is start, change, rescan, SIGHUP or retry-held; in Running also trim.
	Reason string    `json:"reason"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	// Snapshot is the id of the snapshot that Running is about to publish; empty if that is not known yet,
	// or is published already.
	Snapshot string `json:"snapshot,omitempty"`
	// Retrying is why Envoys refuse a step that they are offered again; empty if there is no such step.
	Retrying string `json:"retrying,omitempty"`
	// Outcome is empty while the reconcile is under way.
	Outcome Outcome `json:"outcome,omitempty"`
}

// Refusal is a refusal of the source tree, by validation or by Envoy.
type Refusal struct {
	Since time.Time `json:"since"`
	// Snapshot is the id of the held snapshot, which Envoy refused. It is empty where
	// validation refused the source tree.
	Snapshot string `json:"snapshot,omitempty"`
	Message  string `json:"message"`
	// Errors and Warnings count the findings, of which Findings may be the first ones only.
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings diag.List `json:"findings,omitempty"`
}

// Certificates are findings about the dates of certificates.
type Certificates struct {
	// OutOfDate is about certificates that peers reject now: they have expired, or are not valid yet.
	OutOfDate diag.List `json:"out_of_date,omitempty"`
	// ExpireSoon is about certificates that expire soon.
	ExpireSoon diag.List `json:"expire_soon,omitempty"`
}

// Fault says how many certificates are out of date: "2 certificates are out of date". It is empty if none is.
func (c Certificates) Fault() string {
	return count(len(c.OutOfDate), "is out of date", "are out of date")
}

// Notice says how many certificates expire soon: "1 certificate expires soon". It is empty if none does.
func (c Certificates) Notice() string { return count(len(c.ExpireSoon), "expires soon", "expire soon") }

func count(n int, one, more string) string {
	switch n {
	case 0:
		return ""
	case 1:
		more = one
	}
	return diag.Count(n, "certificate") + " " + more
}

// Outcome is the outcome of a reconcile.
type Outcome string

const (
	// Published means that the source tree is published.
	Published Outcome = "published"
	// Refused means that validation or Envoy refused it: the snapshot before stays published.
	Refused Outcome = "refused"
	// Failed means that the reconcile met an error.
	Failed Outcome = "failed"
)

// Result is the answer to a request.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Snapshot is the id of the snapshot that was published, or that Envoy refused.
	Snapshot string `json:"snapshot,omitempty"`
	// Message says in one sentence what happened.
	Message  string    `json:"message"`
	Findings diag.List `json:"findings,omitempty"`
}

// RetryHeld is a request to publish once more what Envoy refused. Its fields describe the watch
// that it is for: another watch answers with a conflict, and does nothing.
type RetryHeld struct {
	// Source is the source tree, an absolute path; empty for any.
	Source string `json:"source,omitempty"`
	// Flags are values of the flags that must be those of the watch, by name.
	Flags map[string][]string `json:"flags,omitempty"`
}

// wedged is how long a reconcile may take until the watch counts as one that hangs.
const wedged = time.Minute

// Faults returns what is wrong with the source tree or the watch at a time, in words for a person: "the source
// tree is invalid (2 errors)". It returns nothing if the source tree is published and its certificates are valid.
func (w *Watch) Faults(now time.Time) (faults []string) {
	if w.Snapshot == "" {
		faults = append(faults, "nothing is published")
	}
	switch r := w.Refused; {
	case r == nil:
	case r.Snapshot == "":
		faults = append(faults, fmt.Sprintf("the source tree is invalid (%s)", r.Count()))
	default:
		faults = append(faults, fmt.Sprintf("snapshot %s is held", r.Snapshot))
	}
	if w.Failed != "" {
		faults = append(faults, "the source tree can't be read or published")
	}
	if fault := w.Certificates.Fault(); fault != "" {
		faults = append(faults, fault)
	}
	switch r := w.Running; {
	case r == nil:
	case r.Snapshot != "":
		faults = append(faults, fmt.Sprintf("snapshot %s is being published", r.Snapshot))
	case now.Sub(r.Began) > wedged:
		faults = append(faults, fmt.Sprintf("the watch has been busy since %s (%s)", r.Began.Format(time.RFC3339), r.Reason))
	}
	return faults
}

// Count counts the findings: "2 errors, 1 warning".
func (r *Refusal) Count() string { return diag.CountFindings(r.Errors, r.Warnings) }
