// Package control is the door to a running watch: a Unix socket in its output
// directory, behind which HTTP with JSON is spoken.
//
//	GET  /v1/watch       what only the running watch knows: a Watch
//	POST /v1/retry-held  try once more what Envoy refused: a Result, when that is done
//
// The Server never touches what the watch does. It hands a request over, and the
// watch carries it out in its own loop, between two passes:
//
//	server := control.New(log)
//	defer server.Close()
//	err := server.Bind(dir.Path()) // again before each pass: it costs a stat
//	…
//	case request := <-server.Requests():
//		request.Answer(result)
//
// The socket is for the user that the watch runs as, and for root: it has the mode
// 0600 in a folder of 0700, and who may connect may ask. What such a client does by
// mistake, such as to hang, to flood or to speak something else, costs it its
// connection and the watch nothing.
//
// Who binds must hold the lock of the directory: the socket that stands there is
// then one that a killed watch left, and is replaced.
package control

import (
	"errors"
	"path/filepath"
	"time"

	"xdspub/diag"
)

const (
	folder   = ".xdspub" // of all that is not for Envoy
	socket   = "control.sock"
	unlisted = socket + ".new" // until it can be connected to

	watchPath = "/v1/watch"
	retryPath = "/v1/retry-held"
)

// Path is where the socket of an output directory stands.
func Path(out string) string { return filepath.Join(out, folder, socket) }

// ErrNoWatch says that no process listens on the socket.
var ErrNoWatch = errors.New("no watch is running")

// ConflictError says that the running watch is not the one that the asker takes
// it to be.
type ConflictError struct{ Reason string }

func (e *ConflictError) Error() string { return e.Reason }

// Watch is what a running watch says of itself. What is on disk, such as the record
// of what is published, is not repeated here.
type Watch struct {
	PID    int       `json:"pid"`
	Source string    `json:"source"` // the source tree, an absolute path
	Out    string    `json:"out"`    // without symbolic links
	Since  time.Time `json:"since"`
	// Snapshot is the id of the snapshot that is out, empty where none is.
	Snapshot string `json:"snapshot"`
	// Refused says why the source tree as it is now is not out; nil where it is.
	Refused *Refused `json:"refused,omitempty"`
	// Failed is the error of the last pass or trim, where it could not run.
	Failed string `json:"failed,omitempty"`
	// Last is the last pass that has ended, and Running what is under way.
	Last    *Pass `json:"last,omitempty"`
	Running *Pass `json:"running,omitempty"`
	// NextTrim is when something is to be taken away next; zero where nothing waits.
	NextTrim time.Time `json:"next_trim,omitzero"`
}

// Pass is one look at the source tree, with the publishing that follows from it.
type Pass struct {
	// Reason is start, change, rescan, SIGHUP or retry-held; trim for what is under
	// way and no pass.
	Reason string    `json:"reason"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	// Outcome is empty while the pass is under way.
	Outcome Outcome `json:"outcome,omitempty"`
}

// Refused says why something is not out.
type Refused struct {
	Since time.Time `json:"since"`
	// Snapshot is the id of the snapshot that Envoy refused, and that is held. It is
	// empty where it was validation that refused the source tree.
	Snapshot string    `json:"snapshot,omitempty"`
	Message  string    `json:"message"`
	Findings diag.List `json:"findings,omitempty"`
}

// Outcome is how a pass ended.
type Outcome string

const (
	// Published says that what the source tree holds is out.
	Published Outcome = "published"
	// WasRefused says that validation or Envoy refused it: what was out stays.
	WasRefused Outcome = "refused"
	// Failed says that the pass could not run to its end.
	Failed Outcome = "failed"
)

// Result is what became of a request.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Snapshot is the id of what was published, or refused by Envoy.
	Snapshot string `json:"snapshot,omitempty"`
	// Message says in one sentence what happened.
	Message  string    `json:"message"`
	Findings diag.List `json:"findings,omitempty"`
}

// RetryHeld asks to try once more what Envoy refused. The fields say what the asker
// takes the watch to be: where it is another, the answer is a conflict, and nothing
// is done.
type RetryHeld struct {
	// Source is the source tree, an absolute path; empty for whichever it is.
	Source string `json:"source,omitempty"`
	// Flags are values of the flags that must be those of the watch, by name.
	Flags map[string][]string `json:"flags,omitempty"`
}
