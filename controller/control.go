package controller

import (
	"context"
	"os"
	"path/filepath"

	"xdspub/control"
)

// announce says who is there, before anybody can ask.
func (w *watching) announce() error {
	source, err := filepath.Abs(w.options.Source)
	w.shown = control.Watch{PID: os.Getpid(), Source: source, Out: w.options.Out, Since: now(), Snapshot: w.out()}
	w.control.Tell(w.shown)
	return err
}

// listen has the control socket in the output directory. Without it a watch does
// all else.
func (w *watching) listen() {
	err, problem := w.control.Bind(w.options.Out), ""
	switch {
	case err != nil:
		if problem = err.Error(); problem != w.unheard {
			w.log.Warn("no other command reaches this watch, SIGHUP does", "error", err)
		}
	case w.unheard != "":
		w.log.Info("other commands reach this watch now")
	}
	w.unheard = problem
}

// serve carries out what came by the control socket.
func (w *watching) serve(ctx context.Context, r *control.Request) {
	if r.Gone() {
		return
	}
	if w.o.Conflict != nil {
		if reason := w.o.Conflict(w.shown.Source, r.RetryHeld); reason != "" {
			r.Conflict(reason)
			return
		}
	}
	w.log.Info("asked by another command to try again what is held")
	w.retry = true
	result, err := w.turn(ctx, retrying)
	switch {
	case err != nil && result.Message == "":
		result.Message = err.Error()
	case err != nil: // beside what came of it
		result.Message += "; " + err.Error()
	case result.Outcome == "":
		return // ended before it came to anything, which the end tells
	}
	r.Answer(result)
}

// publishState tells the control socket what came of a pass, or of a trim.
func (w *watching) publishState(pass control.Reconcile, result control.Result, err error) {
	switch result.Outcome {
	case control.Published:
		w.shown.Refused = nil
	case control.Refused:
		since := pass.Began
		if r := w.shown.Refused; r != nil && r.Snapshot == result.Snapshot {
			since = r.Since
		}
		w.shown.Refused = &control.Refusal{Since: since, Snapshot: result.Snapshot, Message: result.Message, Findings: result.Findings}
	}
	if pass.Reason != trimming {
		last := pass // Running is being read
		last.Ended, last.Outcome = now(), result.Outcome
		if err != nil {
			last.Outcome = control.Failed
		}
		w.shown.Last = &last
	}
	w.shown.Running, w.shown.Snapshot, w.shown.Failed, w.shown.NextTrim = nil, w.out(), w.changeLog.failed, w.nextTrim
	w.control.Tell(w.shown)
}
