package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/xds"
)

// announce sets the first state for the control socket. An error means that the absolute path of the source
// tree is unknown.
func (w *watching) announce() error {
	source, err := w.options.Source.Source()
	w.shown = control.Watch{
		PID: os.Getpid(), Source: source, Envoys: w.envoys(), Since: now(),
		Snapshot: w.publishedID(), Serves: w.options.Server != nil, Acknowledged: w.options.Envoys == nil && !w.asksClients(),
	}
	w.showPlace()
	if w.shown.Serves {
		w.control.TellClients(w.options.Server.Clients)
	}
	w.show()
	return err
}

// showPlace shows the directory of the watch.
func (w *watching) showPlace() {
	if w.writes() {
		w.shown.Out = w.options.Out
	} else {
		w.shown.State = w.place()
	}
}

// asksClients reports whether a quorum of clients must acknowledge a snapshot.
func (w *watching) asksClients() bool { return w.options.Server != nil && w.options.Server.Confirms() }

// show shows the state on the control socket, and has the Server and the Observer show it.
func (w *watching) show() {
	w.shown.Upstream, w.shown.Aggregate = w.source.upstream(), w.source.options.Aggregate
	if s := w.source.options.Store; s != nil {
		w.shown.Store = s.State(w.target)
	}
	told := w.shown.Shown()
	w.told.Store(&told)
	w.control.Tell(told)
	if w.options.Server != nil {
		w.options.Server.Tell(told)
	}
	if o := w.source.options.Observer; o != nil {
		o.Tell(w.target, told)
	}
}

// shownFindings is the number of findings that an Observer gets.
const shownFindings = 1000

// shownText is the number of findings that an Observer gets as text.
const shownText = 20

// summary summarizes a check.
func summary(checked *check.Result) control.Checked {
	s := control.Checked{Resources: make(map[string]int), Variants: make(map[string]int)}
	all := checked.Variants.All()
	for _, t := range xds.Types {
		if n := len(all.Of(t)); n > 0 {
			s.Resources[t.API], s.Variants[t.API] = len(checked.Snapshot.Of(t)), n
		}
	}
	type kind struct {
		code     string
		severity diag.Severity
	}
	counts := make(map[kind]int)
	for _, d := range checked.Diagnostics {
		counts[kind{d.Code, d.Severity}]++
	}
	for of, n := range counts {
		s.Counts = append(s.Counts, control.CodeCount{Code: of.code, Severity: of.severity, Count: n})
	}
	slices.SortFunc(s.Counts, func(a, b control.CodeCount) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Code, b.Code))
	})
	return s
}

// showRead shows the last check, and passes the snapshot with its findings to the Observer.
func (w *watching) showRead(checked *check.Result) {
	w.shown.Certificates.OutOfDate, w.shown.Certificates.ExpireSoon = check.Certificates(checked.Diagnostics)
	w.shown.Checked = summary(checked)
	if o := w.source.options.Observer; o != nil {
		w.shown.Checked.Findings, _ = checked.Diagnostics.Most(shownFindings)
		w.shown.Checked.Text = checked.Diagnostics.Text(shownText, diag.TextOptions{Line: checked.Line})
		o.Read(w.target, checked.Snapshot)
	}
}

// confirmed shows whether the Envoys and the clients have acknowledged a snapshot that was published, and
// passes the snapshot to the Observer.
func (w *watching) confirmed(o Outcome) {
	if w.writes() {
		w.took("publish", o.FilesTook)
	}
	w.shown.Unconfirmed = o.unconfirmed()
	if w.options.Server != nil {
		w.took("serve", o.ClientsTook)
		w.shown.Unconfirmed = cmp.Or(w.shown.Unconfirmed, w.options.Server.Unconfirmed())
	}
	if w.shown.Unconfirmed == "" && (w.options.Envoys == nil || len(o.Answers) > 0) {
		w.shown.Acknowledged = true
	}
	if o := w.source.options.Observer; o != nil {
		o.Published(w.target, w.accepted)
	}
}

// showEnvoys shows the states of the Envoys. Their state may acknowledge the snapshot.
func (w *watching) showEnvoys() {
	var states []control.EnvoyState
	if fleet := w.options.Envoys; fleet != nil {
		states = w.envoyLog.states(fleet.Addresses(), w.envoys())
	}
	if slices.Equal(states, w.shown.EnvoyStates) {
		return
	}
	w.shown.EnvoyStates = states
	w.acknowledgedLate()
	w.show()
}

// acknowledgedLate shows that the Envoys and the clients have acknowledged the snapshot after its publish, if each
// Envoy that answers runs the published files, and if no quorum is missing.
func (w *watching) acknowledgedLate() {
	is := make(map[control.RunState]int)
	for _, s := range w.shown.EnvoyStates {
		is[s.State]++
	}
	run := w.options.Envoys == nil || is[control.InSync] > 0 && is[control.InSync]+is[control.Unreachable] == len(w.shown.EnvoyStates)
	if !run || w.shown.Running != nil || w.asksClients() && w.options.Server.Unconfirmed() != "" {
		return
	}
	w.shown.Acknowledged, w.shown.Unconfirmed = true, ""
	if w.options.Envoys != nil || w.asksClients() && w.options.Server.Acknowledged() {
		w.recordAcknowledged()
	}
}

// confirmedLate returns the channel that receives a value when a quorum of clients has acknowledged the snapshot late;
// nil if no quorum is asked.
func (w *watching) confirmedLate() <-chan struct{} {
	if !w.asksClients() {
		return nil
	}
	return w.options.Server.ConfirmedLate()
}

// publishing shows the snapshot that the running reconcile is about to publish.
func (w *watching) publishing(snapshot string) {
	if w.shown.Running == nil || snapshot == w.shown.Snapshot {
		return
	}
	running := *w.shown.Running // others may read it
	running.Snapshot = snapshot
	w.shown.Running = &running
	w.show()
}

// retries shows why Envoys refuse a step, which they get again. nil means that they no longer refuse the step.
func (w *watching) retries(refused *publish.RefusedError) {
	words := ""
	if refused != nil {
		words = refused.Error()
	}
	if w.shown.Running == nil || w.shown.Running.Retrying == words {
		return
	}
	running := *w.shown.Running // others may read it
	running.Retrying = words
	w.shown.Running = &running
	w.show()
}

// envoys returns the admin addresses of the Envoys, with absolute socket paths for use by other processes.
func (w *watching) envoys() []string {
	if w.options.Envoys == nil {
		return nil
	}
	list := w.options.Envoys.Addresses()
	for i, address := range list {
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			if abs, err := filepath.Abs(path); err == nil {
				list[i] = "unix:" + abs
			}
		}
	}
	return list
}

// listen opens the control socket in the open directory. If that fails, the watch runs without a control
// socket.
func (w *watching) listen() {
	dir := w.kept()
	if dir == nil {
		return
	}
	err, problem := w.control.Bind(dir.Path()), ""
	switch {
	case err != nil:
		if problem = err.Error(); problem != w.unheard {
			w.log.Write(event.ControlSocketFailed{Error: err})
		}
	case w.unheard != "":
		w.log.Write(event.ControlSocketOpen{})
	}
	w.unheard = problem
}

// serve executes a request from the control socket.
func (w *watching) serve(ctx context.Context, r *control.Request) {
	if r.Gone() {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			e := crash.Of(value)
			r.Answer(control.Result{Outcome: control.Failed, Message: e.Error()})
			panic(e)
		}
	}()
	asked := r.Asked
	switch a := asked.(type) {
	case control.Confirm:
		a.Waited = r.Waited()
		asked = a
	case control.Extend:
		a.Waited = r.Waited()
		asked = a
	}
	result, err := w.execute(ctx, asked)
	conflict, refuses := errors.AsType[*control.ConflictError](err)
	switch {
	case refuses:
		r.Conflict(conflict.Reason)
		return
	case err != nil && result.Message == "":
		result.Message = err.Error()
	case err != nil:
		result.Message += "; " + err.Error()
	case result.Outcome == "":
		return // the watch ends: Close answers the request
	}
	if err != nil {
		result.Outcome = control.Failed
	}
	r.Answer(result)
}

// execute executes a request. A *control.ConflictError refuses the request.
func (w *watching) execute(ctx context.Context, asked any) (control.Result, error) {
	switch r := asked.(type) {
	case control.Pause:
		return w.pause(r)
	case control.Resume:
		return w.resume(ctx, r)
	case control.Rollback:
		return w.rollback(ctx, r)
	case control.Approve:
		return w.approve(ctx, r)
	case control.Confirm:
		return w.confirm(ctx, r)
	case control.Cancel:
		return w.cancel(ctx, r)
	case control.Extend:
		return w.extend(r)
	case control.RetryHeld:
		return w.retryRequested(ctx, r)
	}
	return control.Result{}, fmt.Errorf("no such request: %T", asked)
}

// retryRequested executes a request to publish held snapshots once more.
func (w *watching) retryRequested(ctx context.Context, r control.RetryHeld) (control.Result, error) {
	if w.source.options.Conflict != nil {
		if reason := w.source.options.Conflict(w.shown.Source, r); reason != "" {
			return control.Result{}, &control.ConflictError{Reason: reason}
		}
	}
	w.log.Write(event.RetryRequested{})
	w.retryHeld()
	return w.turn(ctx, retrying)
}

// publishState sets the state for the control socket after a reconcile or a trim.
func (w *watching) publishState(ctx context.Context, done control.Reconcile, result control.Result, err error) {
	switch result.Outcome {
	case control.Published:
		if w.shown.Refused = nil; w.decisions.Pinned == nil {
			w.shown.Waits = nil
		}
	case control.Waiting:
		w.shown.Refused = nil
		w.acknowledgedBefore()
	case control.Refused:
		w.shown.Refused = &control.Refusal{
			Since: w.refusedSince(result.Snapshot, done.Began), Snapshot: result.Snapshot, Message: result.Message, Findings: result.Findings,
			Errors: result.Findings.Count(diag.Error), Warnings: result.Findings.Count(diag.Warning), Part: result.Part,
		}
		w.shown.Waits = nil // of an earlier source tree
		w.acknowledgedBefore()
	}
	if done.Reason != trimming {
		last := done // clients may read Running
		last.Ended, last.Outcome, last.Stages = now(), result.Outcome, w.stages
		if err != nil {
			last.Outcome = control.Failed
		}
		w.shown.Last = &last
	}
	w.shown.Envoys, w.shown.Revision = w.envoys(), w.source.revision(ctx)
	w.shown.Notices = w.source.watcher.Notices()
	if published := w.publishedID(); published != w.shown.Snapshot {
		w.shown.SnapshotSince = now()
	}
	w.shown.Running, w.shown.Snapshot, w.shown.Failed, w.shown.NextTrim = nil, w.publishedID(), w.changeLog.failed, w.nextTrim
	w.showDecisions()
}

// acknowledgedBefore notes, if nothing new is published, that clients have, or get, the snapshot that an earlier quorum
// has acknowledged.
func (w *watching) acknowledgedBefore() {
	if w.asksClients() && w.options.Envoys == nil && w.publishedID() != "" && w.options.Server.Unconfirmed() == "" {
		w.shown.Acknowledged = true
	}
}
