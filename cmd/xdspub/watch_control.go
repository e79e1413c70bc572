package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"xdspub/control"
	"xdspub/publish"
)

// introduce says who is there, before anybody can ask.
func (w *watching) introduce() error {
	source, err := filepath.Abs(w.o.Source)
	w.shown = control.Watch{PID: os.Getpid(), Source: source, Out: w.o.Out, Since: now(), Snapshot: w.out()}
	w.control.Tell(w.shown)
	return err
}

// listen has the control socket in the output directory. Without it a watch does
// all else.
func (w *watching) listen() {
	err, problem := w.control.Bind(w.dir.Path()), ""
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
	if reason := differs(w.v, w.shown.Source, r.RetryHeld); reason != "" {
		r.Conflict(reason)
		return
	}
	w.log.Info("asked by another command to try again what is held")
	w.release = true
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

// turn makes one pass, or one trim, and says to the log and to the control socket
// what came of it.
func (w *watching) turn(ctx context.Context, reason string) (result control.Result, err error) {
	pass := control.Pass{Reason: reason, Began: now()}
	w.shown.Running = &pass
	w.control.Tell(w.shown)
	if reason == trimming {
		err = w.trim(ctx)
	} else {
		result, err = w.pass(ctx, reason)
	}
	w.report(ctx, err, reason)
	switch result.Outcome {
	case control.Published:
		w.shown.Refused = nil
	case control.WasRefused:
		since := pass.Began
		if r := w.shown.Refused; r != nil && r.Snapshot == result.Snapshot {
			since = r.Since
		}
		w.shown.Refused = &control.Refused{Since: since, Snapshot: result.Snapshot, Message: result.Message, Findings: result.Findings}
	}
	if err != nil {
		result.Outcome = control.Failed
	}
	if reason != trimming {
		last := pass // Running is being read
		last.Ended, last.Outcome = now(), result.Outcome
		w.shown.Last = &last
	}
	w.shown.Running, w.shown.Snapshot, w.shown.Failed, w.shown.NextTrim = nil, w.out(), w.failed, w.nextTrim
	w.control.Tell(w.shown)
	return result, err
}

// out is the id of the snapshot that is out, be it of a watch before this one.
func (w *watching) out() string {
	switch {
	case w.published != "":
		return w.published
	case w.dir == nil:
		return ""
	}
	m, err := publish.ReadManifest(w.o.Out)
	if err != nil {
		return "" // a pass says why
	}
	return m.Snapshot
}

// now is the time as it stands in records.
func now() time.Time { return time.Now().UTC().Round(0) }
