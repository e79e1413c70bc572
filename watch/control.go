package watch

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/watch/control"
)

// announce sets the first state for the control socket. An error means that the absolute path of the source
// tree is unknown.
func (w *watching) announce() error {
	source, err := filepath.Abs(w.options.Source.Path)
	w.shown = control.Watch{
		PID: os.Getpid(), Source: source, Out: w.options.Out, Envoys: w.envoys(), Since: now(),
		Snapshot: w.publishedID(), Serves: w.options.Server != nil,
	}
	if w.shown.Serves {
		w.control.TellClients(w.options.Server.Clients)
	}
	w.show()
	return err
}

// show shows the state on the control socket, and has the Server show it.
func (w *watching) show() {
	w.control.Tell(w.shown)
	if w.options.Server != nil {
		w.options.Server.Tell(w.shown)
	}
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

// listen opens the control socket in the output directory. If that fails, the watch runs without a control
// socket.
func (w *watching) listen() {
	if !w.writes() {
		return
	}
	err, problem := w.control.Bind(w.options.Out), ""
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
	if w.source.options.Conflict != nil {
		if reason := w.source.options.Conflict(w.shown.Source, r.RetryHeld); reason != "" {
			r.Conflict(reason)
			return
		}
	}
	w.log.Write(event.RetryRequested{})
	w.retryHeld()
	result, err := w.turn(ctx, retrying)
	switch {
	case err != nil && result.Message == "":
		result.Message = err.Error()
	case err != nil:
		result.Message += "; " + err.Error()
	case result.Outcome == "":
		return // the watch ends: Close answers the request
	}
	r.Answer(result)
}

// publishState sets the state for the control socket after a reconcile or a trim.
func (w *watching) publishState(ctx context.Context, done control.Reconcile, result control.Result, err error) {
	switch result.Outcome {
	case control.Published:
		w.shown.Refused = nil
	case control.Refused:
		since := done.Began
		if r := w.shown.Refused; r != nil && r.Snapshot == result.Snapshot {
			since = r.Since
		}
		w.shown.Refused = &control.Refusal{
			Since: since, Snapshot: result.Snapshot, Message: result.Message, Findings: result.Findings,
			Errors: result.Findings.Count(diag.Error), Warnings: result.Findings.Count(diag.Warning),
		}
	}
	if done.Reason != trimming {
		last := done // clients may read Running
		last.Ended, last.Outcome = now(), result.Outcome
		if err != nil {
			last.Outcome = control.Failed
		}
		w.shown.Last = &last
	}
	w.shown.Envoys, w.shown.Revision = w.envoys(), w.source.revision(ctx)
	if published := w.publishedID(); published != w.shown.Snapshot {
		w.shown.SnapshotSince = now()
	}
	w.shown.Running, w.shown.Snapshot, w.shown.Failed, w.shown.NextTrim = nil, w.publishedID(), w.changeLog.failed, w.nextTrim
	w.show()
}
