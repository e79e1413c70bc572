package watch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"xdspub/envoy"
	"xdspub/event"
	"xdspub/render/confirm"
)

// envoyLog logs when an Envoy does not run what is published, and when it does again. An Envoy
// that runs all files goes on with that until a file moves or another process starts, and one
// that does not as well: what each runs, which costs it time in proportion to its clusters,
// is asked only then. In between it is asked which process it is.
type envoyLog struct {
	log    *event.Log
	answer chan []envoy.Heartbeat // of the question under way
	timer  *time.Timer            // to the next question
	every  time.Duration
	known  map[string]*envoyState // by URL
}

// envoyState is what is known of one Envoy.
type envoyState struct {
	process envoy.Heartbeat // that was asked what it runs; the zero value where none was
	moves   int             // of the Dir, then
	said    string          // what was logged; "" for nothing
	pending string          // what it had not applied yet at the last look, and not refused
}

// inSync is what was logged of an Envoy that runs all files.
const inSync = "in sync"

func newEnvoyLog(log *event.Log, every time.Duration) envoyLog {
	return envoyLog{log: log, answer: make(chan []envoy.Heartbeat, 1), timer: time.NewTimer(0), every: cmp.Or(every, 30*time.Second), known: make(map[string]*envoyState)}
}

// soon brings the next question forward.
func (l *envoyLog) soon() { l.timer.Reset(0) }

// forget makes the states be logged once more. The processes stay known: a restart still shows.
func (l *envoyLog) forget() {
	for _, s := range l.known {
		s.said, s.moves = "", -1
	}
	l.soon()
}

// ask begins the question which processes the Envoys are. It does not wait for one that hangs.
func (w *watching) ask(ctx context.Context) {
	fleet := w.options.Envoys
	if fleet == nil {
		w.envoyLog.timer.Reset(w.envoyLog.every) // the settings may name some
		return
	}
	w.asking.Go(func() {
		select {
		case w.envoyLog.answer <- fleet.Heartbeats(ctx):
		case <-ctx.Done():
		}
	})
}

// answered takes up the answers to ask, and asks what the Envoys run where that is not known.
// Where what is published can't be read, the next reconcile says so.
func (w *watching) answered(ctx context.Context, beats []envoy.Heartbeat) {
	defer w.envoyLog.timer.Reset(w.envoyLog.every)
	if !w.IsOpen() || w.Lost() {
		return // the next reconcile opens it again
	}
	processes, unknown := make(map[string]envoy.Heartbeat), false
	for _, b := range beats {
		processes[b.URL] = b
		unknown = w.envoyLog.heard(b, w.dir.Moves()) || unknown
	}
	if !unknown {
		return
	}
	list, err := w.pipeline.Running(ctx)
	if ctx.Err() != nil || err != nil {
		return
	}
	for _, r := range list {
		if b := processes[r.URL]; b.Err == nil {
			w.envoyLog.runs(r, b, w.dir.Moves())
		}
	}
}

// heard takes up an answer, and reports whether it is not known what this Envoy runs.
func (l *envoyLog) heard(b envoy.Heartbeat, moves int) bool {
	s := l.known[b.URL]
	if s == nil {
		s = &envoyState{}
		l.known[b.URL] = s
	}
	switch {
	case envoy.Unreachable(b.Err): // which the Fleet logs
		return false
	case b.Err != nil:
		l.say(s, b.Err.Error(), event.EnvoyUnknown{Envoy: b.URL, Error: b.Err})
		return false
	case s.process.URL != "" && !b.Same(s.process):
		l.log.Write(event.EnvoyRestarted{Envoy: b.URL})
		*s = envoyState{}
	}
	return s.process.URL == "" || s.moves != moves
}

// runs takes up what an Envoy runs. What it has neither refused nor applied is looked at twice:
// it may be about to.
func (l *envoyLog) runs(r confirm.Running, process envoy.Heartbeat, moves int) {
	s := l.known[r.URL]
	text := fmt.Sprint(r.NotApplied)
	switch {
	case envoy.Unreachable(r.Err), r.Starting:
		return
	case r.Err != nil:
		l.say(s, r.Err.Error(), event.EnvoyUnknown{Envoy: r.URL, Error: r.Err})
	case len(r.NotApplied) == 0:
		l.say(s, inSync, event.EnvoyInSync{Envoy: r.URL, Files: r.Files})
	case !allRefused(r) && s.pending != text:
		s.pending = text
		return
	default:
		var events []event.Event
		for _, not := range r.NotApplied {
			events = append(events, not)
		}
		l.say(s, text, events...)
	}
	s.process, s.moves, s.pending = process, moves, ""
}

func allRefused(r confirm.Running) bool {
	for _, not := range r.NotApplied {
		if not.State != envoy.Refused.String() {
			return false
		}
	}
	return true
}

// say logs a state of an Envoy, unless it was logged last.
func (l *envoyLog) say(s *envoyState, text string, events ...event.Event) {
	if s.said == text {
		return
	}
	s.said = text
	for _, e := range events {
		l.log.Write(e)
	}
}

// moved takes up that files have moved since the Dir had made so many moves. An Envoy that ran
// all files before and has acknowledged each step runs all of them now; the others are asked.
func (l *envoyLog) moved(answers []envoy.Outcome, before, now int) {
	if before == now {
		return
	}
	for url, s := range l.known {
		if s.said == inSync && s.moves == before && acknowledged(answers, url) {
			s.moves = now
		} else {
			l.soon()
		}
	}
}

// acknowledged reports whether an Envoy has acknowledged all steps that it was asked about.
func acknowledged(answers []envoy.Outcome, url string) bool {
	for _, o := range answers {
		for _, e := range o.Envoys {
			if e.URL == url && (e.Err != nil || e.Restarted || o.Verdict != envoy.Confirmed || e.State() != envoy.Acked) {
				return false
			}
		}
	}
	return true
}
