// Package control implements the control socket of a running watch: a Unix socket in the output directory
// that speaks HTTP with JSON.
//
//	GET  /v1/watch       the state of the watch: a Watch
//	GET  /v1/clients     the clients of the watch: a list of clients.Client
//	GET  /v1/events      the last events of the watch: a list of log lines as JSON
//	POST /v1/retry-held  publish held snapshots once more: a Result, after the publish
//	POST /v1/pause       publish nothing until a resume: a Result
//	POST /v1/resume      end the pause and the pin: a Result, after the publish
//	POST /v1/rollback    publish a snapshot of the history, and pin it: a Result, after the publish
//	POST /v1/approve     publish a change that the guards have refused: a Result, after the publish; or withdraw the approval
//	POST /v1/confirm     keep the snapshot that awaits confirmation: a Result, after the publish of what waits
//	POST /v1/cancel      undo the snapshot that awaits confirmation: a Result, after the publish
//	POST /v1/extend      set the end of the wait for a confirmation: a Result
//
// The Server only passes requests on. The watch executes them in its own loop, between two reconciles:
//
//	server := control.New(log)
//	defer server.Close()
//	err := server.Bind(dir.Path()) // again before each reconcile, for the price of a stat
//	…
//	case request := <-server.Requests():
//		request.Answer(result)
//
// Only the watch's user and root can use the socket: its mode is 0600, in a folder of mode 0700. A client
// that can connect may send any request. A client that hangs, floods the socket or speaks another protocol
// loses its connection, and doesn't disturb the watch.
//
// The caller of Bind must hold the lock of the directory. An existing socket then belongs to a killed watch,
// and Bind replaces it.
package control

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/source/owners"
	"xdspub/source/rollout"
	"xdspub/watch/freeze"
)

const (
	folder   = ".xdspub" // for files that Envoy doesn't read
	socket   = "control.sock"
	unlisted = socket + ".new" // name until the socket accepts connections
	ended    = socket + ".end" // the socket of a watch that has ended; it accepts no connections

	watchPath   = "/v1/watch"
	clientsPath = "/v1/clients"
	eventsPath  = "/v1/events"
	retryPath   = "/v1/retry-held"
	pausePath   = "/v1/pause"
	resumePath  = "/v1/resume"

	rollbackPath = "/v1/rollback"
	approvePath  = "/v1/approve"
	confirmPath  = "/v1/confirm"
	cancelPath   = "/v1/cancel"
	extendPath   = "/v1/extend"
)

// Path returns the path of the socket of an output directory.
func Path(out string) string { return filepath.Join(out, folder, socket) }

// ErrNoWatch means that no process listens on the socket.
var ErrNoWatch = errors.New("no watch is running")

// ErrDied wraps ErrNoWatch. The socket belongs to a watch that was killed, or whose machine went down.
var ErrDied = fmt.Errorf("%w: the last one was killed", ErrNoWatch)

// EndedError wraps ErrNoWatch. The last watch ended by itself, for example after SIGTERM, and nothing was
// published since.
type EndedError struct{ Time time.Time }

func (e *EndedError) Error() string {
	return fmt.Sprintf("%v: the last one ended at %s", ErrNoWatch, e.Time.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrNoWatch.
func (e *EndedError) Unwrap() error { return ErrNoWatch }

// ErrSilent means that a watch listens on the socket and does not answer in time.
var ErrSilent = errors.New("no answer")

// ConflictError means that the running watch doesn't match the request.
type ConflictError struct{ Reason string }

func (e *ConflictError) Error() string { return e.Reason }

// Watch is the state of a running watch, without what files on disk say, such as the manifest.
type Watch struct {
	PID    int    `json:"pid"`
	Source string `json:"source"` // absolute path of the source tree
	// Revision is the git commit of the source tree at the last read, with "+dirty" if the tree differed from
	// the commit; empty without git.
	Revision string `json:"revision,omitempty"`
	Out      string `json:"out"` // without symbolic links; empty for a server without an output directory
	// State is the directory of serve --state, without symbolic links; empty with an output directory, or without
	// --state.
	State string `json:"state,omitempty"`
	// Envoys are the admin addresses that the watch asks, in the syntax of --envoy-admin with absolute socket
	// paths.
	Envoys []string  `json:"envoys,omitempty"`
	Since  time.Time `json:"since"`
	// Serves means that the watch also serves clients over the network.
	Serves bool `json:"serves"`
	// Snapshot is the id of the published snapshot; empty if no snapshot is published. SnapshotSince is when
	// this watch published the snapshot; zero if the snapshot was published before the watch began.
	Snapshot      string    `json:"snapshot"`
	SnapshotSince time.Time `json:"snapshot_since,omitzero"`
	// Refused is why the current source tree is not published; nil if published.
	Refused *Refusal `json:"refused,omitempty"`
	// Paused is the pause by an operator; nil without one.
	Paused *Shown `json:"paused,omitempty"`
	// Pinned is the pin of a snapshot of the history, by a rollback; nil without one.
	Pinned *Shown `json:"pinned,omitempty"`
	// Trial is the published snapshot if it awaits the confirmation of an operator; nil otherwise.
	Trial *Trial `json:"trial,omitempty"`
	// Frozen is the freeze in force; nil without one.
	Frozen *freeze.State `json:"frozen,omitempty"`
	// Guarded is the change that waits for an approval; nil for none. Approved is the unused approval; nil for none.
	Guarded  *Guarded `json:"guarded,omitempty"`
	Approved *Shown   `json:"approved,omitempty"`
	// Waits is the valid snapshot of the source tree that a decision of an operator, or a freeze, keeps from being
	// published; nil if none waits.
	Waits *Waits `json:"waits,omitempty"`
	// Acknowledged means that the Envoys, or the quorum of clients, have acknowledged a snapshot since the
	// watch began. If the watch asks nobody, Acknowledged is true after the first publish.
	Acknowledged bool `json:"acknowledged"`
	// Unconfirmed is why the Envoys, or the quorum of clients, have not acknowledged the published snapshot;
	// empty if they have, or if the watch asks nobody.
	Unconfirmed string `json:"unconfirmed,omitempty"`
	// EnvoyStates are the states of the Envoys, in the order of Envoys.
	EnvoyStates []EnvoyState `json:"envoy_states,omitempty"`
	// Checked summarizes the last check of the source tree.
	Checked Checked `json:"checked,omitzero"`
	// Certificates are findings about certificates in the source tree, from the last check.
	Certificates Certificates `json:"certificates,omitzero"`
	// CertificateExpires is the first time at which a certificate of the published snapshot expires. It is zero if
	// the snapshot has no certificate, or if an earlier process has published the snapshot.
	CertificateExpires time.Time `json:"certificate_expires,omitzero"`
	// Inotify is what the published files cost an Envoy; nil without an output directory, or before the first
	// publish of this watch.
	Inotify *Inotify `json:"inotify,omitempty"`
	// Upstream is the connection to a control plane or a store that is the source; nil for a source tree.
	Upstream *Upstream `json:"upstream,omitempty"`
	// Aggregate has the node fields of the clients that get the snapshot, as text. It is empty for the clients with the
	// node of the server, and without --aggregate-by.
	Aggregate string `json:"aggregate,omitempty"`
	// Store is the store of a fleet that gets the published snapshots; nil without --store.
	Store *Store `json:"store,omitempty"`
	// Notices says how the watch learns of changes of the source tree. It is empty with an Upstream.
	Notices Notices `json:"notices,omitempty"`
	// Failed is the error of the last reconcile or trim; empty if it succeeded.
	Failed string `json:"failed,omitempty"`
	// Last is the last finished reconcile, Running the current one.
	Last    *Reconcile `json:"last,omitempty"`
	Running *Reconcile `json:"running,omitempty"`
	// NextTrim is the time of the next trim; zero if no trim is due.
	NextTrim time.Time `json:"next_trim,omitzero"`
}

// Upstream is the connection to a control plane or a store.
type Upstream struct {
	// Kind says what the source is: "control plane" or "store".
	Kind      string `json:"kind"`
	Connected bool   `json:"connected"`
	// Server is the address of the connected server; empty if Connected is false.
	Server string `json:"server,omitempty"`
	// Since is the time at which Connected changed last, or at which the watch could use again what the source has. A
	// control plane that connects for less than 10s is gone since the time before the connection.
	Since time.Time `json:"since"`
	// Error is why no server is connected, or why what a connected server has can't be used. Error is empty if the
	// watch follows the server, or before the first connection.
	Error string `json:"error,omitempty"`
	// StaleSince is since when the watch does not follow the source, because the source is gone or can't be used; zero
	// while the watch follows the source.
	StaleSince time.Time `json:"stale_since,omitzero"`
	// MaxStale is how long the watch stays ready after StaleSince, in seconds; 0 for ever.
	MaxStale float64 `json:"max_stale,omitempty"`
	// Rollout is what this machine gets of a rollout of the store; zero without a rollout.
	Rollout rollout.Share `json:"rollout,omitzero"`
}

// Share returns what this machine gets of a rollout, as text; empty without a rollout.
func (w Watch) Share() string {
	if w.Upstream == nil {
		return ""
	}
	return w.Upstream.Rollout.String()
}

// Stale reports whether the watch does not follow the source for longer than MaxStale. A nil Upstream is not stale.
func (u *Upstream) Stale(now time.Time) bool {
	return u != nil && !u.StaleSince.IsZero() && u.MaxStale > 0 && now.Sub(u.StaleSince).Seconds() >= u.MaxStale
}

// Fault returns since when the source is gone, or why what the source has can't be used, as text; empty if the watch
// follows the source.
func (u *Upstream) Fault() string {
	switch {
	case u == nil, u.Connected && u.Error == "":
		return ""
	case u.Connected:
		return fmt.Sprintf("the %s can't be used since %s: %s", u.Kind, u.StaleSince.UTC().Format(time.RFC3339), u.Error)
	}
	text := fmt.Sprintf("the %s is gone since %s", u.Kind, u.Since.UTC().Format(time.RFC3339))
	if u.Error != "" {
		text += ": " + u.Error
	}
	return text
}

// Waits is a snapshot that waits, and since when.
type Waits struct {
	Since    time.Time `json:"since"`
	Snapshot string    `json:"snapshot"`
	// Part says what goes on during a freeze; nil if nothing may go on.
	Part *Part `json:"part,omitempty"`
}

// Inotify counts the inotify instances of an Envoy that reads the output directory.
type Inotify struct {
	// Used is the number of instances after the last publish. Budget is the value of --inotify-budget.
	Used   int `json:"used"`
	Budget int `json:"budget"`
}

// Notices is how a watch learns of changes of the source tree.
type Notices string

const (
	// ByEvents: the system reports events of the whole tree.
	ByEvents Notices = "events"
	// ByPolling: the watch polls the whole tree.
	ByPolling Notices = "polling"
	// ByPart: the system reports no events of a part of the tree, which only each rescan reads.
	ByPart Notices = "partial"
)

// AllNotices returns all values of Notices.
func AllNotices() []Notices { return []Notices{ByEvents, ByPolling, ByPart} }

// Reconcile is one read of the source tree with the publish that follows.
type Reconcile struct {
	// Reason is start, change, rescan, SIGHUP, retry-held, resume, rollback, approve, confirm or undo; in Running also
	// trim.
	Reason string    `json:"reason"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	// Snapshot is the id of the snapshot that Running is about to publish; empty if unknown or already
	// published.
	Snapshot string `json:"snapshot,omitempty"`
	// Retrying is why Envoys refuse a step, which they get again; empty if they refuse no step.
	Retrying string `json:"retrying,omitempty"`
	// Outcome is empty until the reconcile ends.
	Outcome Outcome `json:"outcome,omitempty"`
	// Stages are the finished stages, in their order.
	Stages []Stage `json:"stages,omitempty"`
}

// Stage is a part of a reconcile with its duration.
type Stage struct {
	// Name is read, plan, publish, serve or trim: reading and checking the source tree, planning the files, moving the
	// files with the wait for Envoys, passing the snapshot to clients, removing unused files.
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// EnvoyState says whether an Envoy runs the published files.
type EnvoyState struct {
	Address string   `json:"address"`
	State   RunState `json:"state"`
	// Since is the time at which the watch noticed the state.
	Since time.Time `json:"since,omitzero"`
	// Error is why the Envoy is not InSync; empty if unknown.
	Error string `json:"error,omitempty"`
}

// RunState is the state of an Envoy.
type RunState string

const (
	// InSync: the Envoy runs all published files that it subscribes to.
	InSync RunState = "in-sync"
	// NotApplied: the Envoy does not run a published file.
	NotApplied RunState = "not-applied"
	// Unreachable: the Envoy does not answer.
	Unreachable RunState = "unreachable"
	// Unknown: the answers of the Envoy do not tell what it runs, or the watch has not asked yet.
	Unknown RunState = "unknown"
)

// RunStates returns all states.
func RunStates() []RunState { return []RunState{InSync, NotApplied, Unreachable, Unknown} }

// Checked summarizes a check of the source tree.
type Checked struct {
	// Resources counts the resources for the files, or for a client without parameters. Variants counts the
	// resources with all variants. The keys are APIs such as CDS.
	Resources map[string]int `json:"resources,omitempty"`
	Variants  map[string]int `json:"variants,omitempty"`
	// Counts counts the findings by code and severity.
	Counts []CodeCount `json:"findings,omitempty"`
	// Findings are the first findings, errors before the others. The control socket does not send them.
	Findings diag.List `json:"-"`
	// Text is the first of Findings as text for people, with their source lines. Findings and Text are for an Observer,
	// and empty without one. The control socket sends neither.
	Text string `json:"-"`
}

// CodeCount is the number of findings with a code and a severity.
type CodeCount struct {
	Code     string        `json:"code"`
	Severity diag.Severity `json:"severity"`
	Count    int           `json:"count"`
}

// Refusal is a refusal of the source tree, by validation or by Envoy.
type Refusal struct {
	Since time.Time `json:"since"`
	// Snapshot is the id of the held snapshot, which Envoy refused; empty if validation refused the source
	// tree.
	Snapshot string `json:"snapshot,omitempty"`
	Message  string `json:"message"`
	// Errors and Warnings count all findings; Findings may hold only the first.
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings diag.List `json:"findings,omitempty"`
	// Part says what goes on meanwhile; nil if nothing may go on.
	Part *Part `json:"part,omitempty"`
}

// Part is the part of a refused or frozen source tree that is published.
type Part struct {
	// WhileRefused is the value of --while-refused, such as endpoints and secrets. It is empty if these changes wait,
	// because they have errors together with the rest of the part.
	WhileRefused []string `json:"while_refused"`
	// Held are the owners whose folders keep their last valid resources. All other folders go on.
	Held []owners.Held `json:"held,omitempty"`
	// OwnersWait is why the folders of all owners wait; empty without owners.
	OwnersWait string `json:"owners_wait,omitempty"`
	// Time is when a part was published last; zero if the watch has published none.
	Time time.Time `json:"time,omitzero"`
	// Waits is why nothing of the source tree, as read last, was published; empty if all that may go on is published.
	Waits string `json:"waits,omitempty"`
}

// String returns what goes on, such as "faultless changes of endpoints and secrets go on".
func (p *Part) String() string {
	var says []string
	if len(p.Held) > 0 {
		says = append(says, owners.Text(p.Held)+"; all other folders go on")
	}
	if p.OwnersWait != "" {
		says = append(says, "all folders wait: "+p.OwnersWait)
	}
	names := strings.Join(p.WhileRefused, " and ")
	switch {
	case p.Waits != "" && names == "":
		return "nothing goes on: " + p.Waits
	case p.Waits != "":
		return fmt.Sprintf("%s wait, too: %s", names, p.Waits)
	case names != "":
		says = append(says, "faultless changes of "+names+" go on")
	}
	return strings.Join(says, "; ")
}

// Certificates are findings about the dates of certificates.
type Certificates struct {
	// OutOfDate is about certificates that peers reject now, because they have expired or are not valid yet.
	OutOfDate diag.List `json:"out_of_date,omitempty"`
	// ExpireSoon is about certificates that expire soon.
	ExpireSoon diag.List `json:"expire_soon,omitempty"`
}

// Fault returns the number of certificates out of date, as in "2 certificates are out of date"; empty for 0.
func (c Certificates) Fault() string {
	return count(len(c.OutOfDate), "is out of date", "are out of date")
}

// Notice returns the number of certificates that expire soon, as in "1 certificate expires soon"; empty for
// 0.
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

// Outcome is the outcome of a reconcile, or of a request.
type Outcome string

const (
	// Published means that the source tree is published.
	Published Outcome = "published"
	// Refused means that validation or Envoy refused the source tree. The snapshot before stays published.
	Refused Outcome = "refused"
	// Failed means that the reconcile ended with an error.
	Failed Outcome = "failed"
	// Waiting means that the source tree is valid, and that a decision of an operator, or a freeze, keeps it from being
	// published.
	Waiting Outcome = "waiting"
	// Paused means that a request began a pause.
	Paused Outcome = "paused"
	// Resumed means that a request ended a pause, and that no watch publishes what waits.
	Resumed Outcome = "resumed"
	// Approved means that a request approved a change, and that no watch publishes the change.
	Approved Outcome = "approved"
	// Withdrawn means that a request has withdrawn an approval, and that the change waits again.
	Withdrawn Outcome = "withdrawn"
	// Unchanged means that a request had nothing to end.
	Unchanged Outcome = "unchanged"
	// Confirmed means that a request has confirmed a snapshot, which stays published.
	Confirmed Outcome = "confirmed"
	// Extended means that a request has set the end of a trial.
	Extended Outcome = "extended"
	// Undone means that the snapshot before a trial is published again.
	Undone Outcome = "undone"
)

// Result is the answer to a request. The commands print the same object.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Snapshot is the id of the snapshot that was published or refused.
	Snapshot string `json:"snapshot,omitempty"`
	// Message describes the result in one sentence.
	Message  string    `json:"message"`
	Findings diag.List `json:"findings,omitempty"`
	// Paused is the pause after the request; nil without one.
	Paused *Shown `json:"paused,omitempty"`
	// Pinned is the pin after the request; nil without one.
	Pinned *Shown `json:"pinned,omitempty"`
	// Approved is the approval after the request; nil without one.
	Approved *Shown `json:"approved,omitempty"`
	// Trial is the trial after the request; nil without one.
	Trial *Trial `json:"trial,omitempty"`
	// Part is Refusal.Part.
	Part *Part `json:"part,omitempty"`
}

// RetryHeld is a request to publish held snapshots once more. Its fields describe the intended watch. A watch
// that doesn't match answers with a conflict and does nothing.
type RetryHeld struct {
	// Source is the absolute path of the source tree; empty for any.
	Source string `json:"source,omitempty"`
	// Flags are values that flags of the watch must have, by flag name.
	Flags map[string][]string `json:"flags,omitempty"`
}

// Pause is a request to publish nothing until a resume.
type Pause struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason"`
	// For is when the pause ends by itself, in seconds from now; 0 if it does not.
	For float64 `json:"for_seconds,omitempty"`
	// Replace permits to replace a pause.
	Replace bool `json:"replace,omitempty"`
}

// Resume is a request to end the pause and the pin. With a Reason, the source tree is also published during a freeze,
// this once.
type Resume struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason,omitempty"`
}

// Rollback is a request to publish a snapshot of the history, and to pin it. At most one of Entry, At and Revision is
// set. Without all three, Rollback asks for the entry before the published one.
type Rollback struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason"`
	// Entry is the beginning of the id of the entry.
	Entry string `json:"entry,omitempty"`
	// At is a time at which the entry was published.
	At time.Time `json:"at,omitzero"`
	// Revision is the beginning of the git commit of the entry.
	Revision string `json:"revision,omitempty"`
	// WithSecrets asks for the secrets of the entry, too.
	WithSecrets bool `json:"with_secrets,omitempty"`
	// AllowRemoval turns the guards off.
	AllowRemoval bool `json:"allow_removal,omitempty"`
	// Flags are as in RetryHeld.
	Flags map[string][]string `json:"flags,omitempty"`
}

// Approve is a request to publish a change that the guards have refused, once.
type Approve struct {
	By     string `json:"by"` // user@host
	Reason string `json:"reason"`
	// Change is the beginning of the id of the change.
	Change string `json:"change"`
	// Withdraw asks to withdraw the unused approval of the change instead.
	Withdraw bool `json:"withdraw,omitempty"`
}

// wedged is the duration after which a reconcile counts as a hang.
const wedged = time.Minute

// Shown returns the state in the form that leaves the watch: texts that may quote Envoys, clients and files have …
// instead of secrets. Findings hide their secrets themselves.
func (w Watch) Shown() Watch {
	w.Failed, w.Unconfirmed = diag.Hide(w.Failed), diag.Hide(w.Unconfirmed)
	if w.Upstream != nil {
		upstream := *w.Upstream
		upstream.Error = diag.Hide(upstream.Error)
		w.Upstream = &upstream
	}
	if w.Store != nil {
		store := *w.Store
		store.Error = diag.Hide(store.Error)
		w.Store = &store
	}
	w.EnvoyStates = slices.Clone(w.EnvoyStates)
	for i := range w.EnvoyStates {
		w.EnvoyStates[i].Error = diag.Hide(w.EnvoyStates[i].Error)
	}
	if w.Paused != nil {
		paused := *w.Paused
		paused.Reason = diag.Hide(paused.Reason)
		w.Paused = &paused
	}
	if w.Frozen != nil {
		frozen := *w.Frozen
		frozen.Reason = diag.Hide(frozen.Reason)
		w.Frozen = &frozen
	}
	if w.Trial != nil {
		trial := *w.Trial
		trial.Reason, trial.Stuck = diag.Hide(trial.Reason), diag.Hide(trial.Stuck)
		w.Trial = &trial
	}
	if w.Refused != nil {
		refused := *w.Refused
		refused.Message = diag.Hide(refused.Message)
		if refused.Part != nil {
			part := *refused.Part
			part.Waits, part.OwnersWait = diag.Hide(part.Waits), diag.Hide(part.OwnersWait)
			refused.Part = &part
		}
		w.Refused = &refused
	}
	if w.Running != nil {
		running := *w.Running
		running.Retrying = diag.Hide(running.Retrying)
		w.Running = &running
	}
	return w
}

// Ready reports whether a valid snapshot is out and, if Envoys or a quorum of clients confirm, acknowledged. Readiness,
// by HTTP and by gRPC, follows Ready. A watch that does not follow its control plane or its store for too long is not
// ready.
func (w *Watch) Ready() bool {
	return w.Snapshot != "" && w.Acknowledged && !w.Upstream.Stale(time.Now())
}

// Faults returns the faults of the watch at a time, as text such as "the source tree is invalid (2 errors)".
// Faults returns nil if the source tree is published, acknowledged, run by all Envoys and confirmed, its certificates
// are valid, and no reconcile publishes or hangs.
func (w *Watch) Faults(now time.Time) (faults []string) {
	switch {
	case w.Snapshot == "":
		faults = append(faults, "nothing is published")
	case w.Unconfirmed != "":
		faults = append(faults, w.UnconfirmedText())
	case !w.Acknowledged:
		faults = append(faults, "the snapshot is not acknowledged yet")
	}
	switch r := w.Refused; {
	case r == nil:
	case r.Snapshot == "":
		faults = append(faults, fmt.Sprintf("the source tree is invalid (%s)%s", r.Count(), r.GoesOn()))
	default:
		faults = append(faults, fmt.Sprintf("snapshot %s is held%s", r.Snapshot, r.GoesOn()))
	}
	if w.Paused != nil {
		faults = append(faults, "publishing is paused "+w.Paused.String())
	}
	if w.Pinned != nil {
		faults = append(faults, "publishing is pinned "+w.Pinned.String())
	}
	if w.Frozen != nil && w.Waits != nil { // a freeze without a waiting change is no fault
		faults = append(faults, "publishing is frozen "+w.Frozen.String())
	}
	if w.Guarded != nil {
		faults = append(faults, w.Guarded.String())
	}
	if w.Approved != nil {
		faults = append(faults, "an approval waits "+w.Approved.String())
	}
	if w.Trial != nil {
		faults = append(faults, w.TrialAt(now).String())
	}
	if w.Waits != nil {
		faults = append(faults, fmt.Sprintf("snapshot %s of the source tree waits%s", w.Waits.Snapshot, w.Waits.GoesOn()))
	}
	if fault := w.Upstream.Fault(); fault != "" {
		faults = append(faults, fault)
	}
	if fault := w.Store.Fault(); fault != "" {
		faults = append(faults, fault)
	}
	if r := w.Rollout(); r != nil {
		faults = append(faults, r.String())
	}
	if w.Failed != "" {
		faults = append(faults, "the source tree can't be read or published")
	}
	if fault := w.Certificates.Fault(); fault != "" {
		faults = append(faults, fault)
	}
	faults = append(faults, w.envoyFaults()...)
	switch r := w.Running; {
	case r == nil:
	case r.Snapshot != "":
		faults = append(faults, fmt.Sprintf("snapshot %s is being published", r.Snapshot))
	case now.Sub(r.Began) > wedged:
		faults = append(faults, fmt.Sprintf("the watch has been busy since %s (%s)", r.Began.Format(time.RFC3339), r.Reason))
	}
	return faults
}

// UnconfirmedText returns why the published snapshot is not confirmed, as text; empty if the snapshot is confirmed, or
// if nobody has to confirm it.
func (w *Watch) UnconfirmedText() string {
	if w.Unconfirmed == "" {
		return ""
	}
	return fmt.Sprintf("snapshot %s is not confirmed: %s", w.Snapshot, w.Unconfirmed)
}

// TrialAt returns the trial at a time; nil without one.
func (w *Watch) TrialAt(now time.Time) *Trial {
	if w.Trial == nil {
		return nil
	}
	t := *w.Trial
	t.Overdue = t.Overdue || now.After(t.Until)
	return &t
}

// envoyFaults returns how many Envoys do not run the published files, as text such as "1 of 2 Envoys is not in
// sync".
func (w *Watch) envoyFaults() (faults []string) {
	is := make(map[RunState]int)
	for _, e := range w.EnvoyStates {
		if e.State != Unknown || e.Error != "" {
			is[e.State]++
		}
	}
	for _, of := range []struct {
		state     RunState
		one, more string
	}{
		{Unreachable, "does not answer", "do not answer"},
		{Unknown, "does not say what it runs", "do not say what they run"},
		{NotApplied, "is not in sync", "are not in sync"},
	} {
		if n := is[of.state]; n > 0 {
			verb := of.more
			if n == 1 {
				verb = of.one
			}
			faults = append(faults, fmt.Sprintf("%d of %d Envoys %s", n, len(w.EnvoyStates), verb))
		}
	}
	return faults
}

// GoesOn returns since when the source tree is refused and what goes on, as in " since 2026-01-02T03:04:05Z;
// faultless changes of endpoints go on". GoesOn returns "" if nothing may go on.
func (r *Refusal) GoesOn() string {
	if r.Part == nil {
		return ""
	}
	return fmt.Sprintf(" since %s; %s", r.Since.UTC().Format(time.RFC3339), r.Part)
}

// GoesOn returns what goes on during a freeze, as in "; faultless changes of endpoints go on", or "".
func (w *Waits) GoesOn() string {
	if w.Part == nil {
		return ""
	}
	return "; " + w.Part.String()
}

// Count returns the number of findings as text: "2 errors, 1 warning".
func (r *Refusal) Count() string { return diag.CountFindings(r.Errors, r.Warnings) }
