package watch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"xdspub/envoy"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/confirm"
	"xdspub/watch/control"
)

// envoyLog logs when an Envoy stops running the published files, and when it runs them again. Asking an Envoy
// for its versions takes time in proportion to its clusters. So envoyLog asks for them only after a file has
// moved or the Envoy has restarted. At other times envoyLog asks only for a Heartbeat, which tells whether the
// Envoy has restarted.
type envoyLog struct {
	log    *event.Log
	answer chan []envoy.Heartbeat // the answers to ask
	timer  *time.Timer            // fires when to ask again
	every  time.Duration
	known  map[string]*envoyState // by URL
}

// envoyState is the last known state of an Envoy.
type envoyState struct {
	process envoy.Heartbeat // the Heartbeat when the versions were last known; zero before
	moves   int             // Dir.Moves when the versions were last known
	said    string          // the logged state; "" for none
	shown   control.EnvoyState
	pending string // the files not applied at the last question, which get a second one
}

// states returns the states of the Envoys with the URLs, for the control socket. addresses are the addresses of
// the Envoys for other processes, in the order of urls.
func (l *envoyLog) states(urls, addresses []string) (list []control.EnvoyState) {
	for i, url := range urls {
		is := control.EnvoyState{State: control.Unknown}
		if s := l.known[url]; s != nil && s.shown.State != "" {
			is = s.shown
		}
		is.Address = addresses[i]
		list = append(list, is)
	}
	return list
}

// show sets the state for the control socket. why is the reason; empty for InSync.
func (s *envoyState) show(is control.RunState, why string) {
	if s.shown.State != is {
		s.shown.Since = now()
	}
	s.shown.State, s.shown.Error = is, why
}

// inSync is the value of said for an Envoy that runs all files.
const inSync = "in sync"

func newEnvoyLog(log *event.Log, every time.Duration) envoyLog {
	return envoyLog{
		log: log, answer: make(chan []envoy.Heartbeat, 1), timer: time.NewTimer(0),
		every: cmp.Or(every, 30*time.Second), known: make(map[string]*envoyState),
	}
}

// soon brings the next question forward.
func (l *envoyLog) soon() { l.timer.Reset(0) }

// forget makes envoyLog log all states once more. envoyLog keeps the processes, and so still notices restarts.
func (l *envoyLog) forget() {
	for _, s := range l.known {
		s.said, s.moves = "", -1
	}
	l.soon()
}

// ask asks the Envoys for Heartbeats in the background, because an Envoy may hang.
func (w *watching) ask(ctx context.Context) {
	fleet := w.options.Envoys
	if fleet == nil {
		w.envoyLog.timer.Reset(w.envoyLog.every) // a change of the settings may add Envoys
		return
	}
	log := w.log
	answer := func(beats []envoy.Heartbeat) {
		select {
		case w.envoyLog.answer <- beats:
		case <-ctx.Done():
		}
	}
	w.asking.Go(crash.Guard(func() { answer(fleet.Heartbeats(ctx)) }, func(e *crash.Error) {
		log.Crashed(e)
		answer(nil)
	}))
}

// answered handles the answers to ask, and asks the Envoys which versions they run if the versions of an Envoy
// are unknown. If the published files can't be read, the next reconcile reports the error.
func (w *watching) answered(ctx context.Context, beats []envoy.Heartbeat) {
	defer w.envoyLog.timer.Reset(w.envoyLog.every)
	defer w.showEnvoys()
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

// heard handles a Heartbeat, and reports whether the versions of this Envoy are unknown.
func (l *envoyLog) heard(b envoy.Heartbeat, moves int) bool {
	s := l.known[b.URL]
	if s == nil {
		s = &envoyState{}
		l.known[b.URL] = s
	}
	switch {
	case envoy.Unreachable(b.Err): // the Fleet logs unreachable Envoys
		s.show(control.Unreachable, b.Err.Error())
		return false
	case b.Err != nil:
		s.show(control.Unknown, b.Err.Error())
		l.say(s, b.Err.Error(), event.EnvoyUnknown{Envoy: b.URL, Error: b.Err})
		return false
	case s.process.URL != "" && !b.Same(s.process):
		l.log.Write(event.EnvoyRestarted{Envoy: b.URL})
		*s = envoyState{shown: s.shown}
		s.show(control.Unknown, "the Envoy was restarted")
	case s.shown.State == control.Unreachable && s.said == inSync:
		s.show(control.InSync, "")
	case s.shown.State == control.Unreachable:
		return true
	}
	return s.process.URL == "" || s.moves != moves
}

// runs handles the versions that an Envoy runs. If a file is neither refused nor applied, runs logs it only
// when the next answer is the same, because the Envoy may be about to apply the file.
func (l *envoyLog) runs(r confirm.Running, process envoy.Heartbeat, moves int) {
	s := l.known[r.URL]
	text := fmt.Sprint(r.NotApplied)
	switch {
	case envoy.Unreachable(r.Err), r.Starting:
		return
	case r.Err != nil:
		s.show(control.Unknown, r.Err.Error())
		l.say(s, r.Err.Error(), event.EnvoyUnknown{Envoy: r.URL, Error: r.Err})
	case len(r.NotApplied) == 0:
		s.show(control.InSync, "")
		l.say(s, inSync, event.EnvoyInSync{Envoy: r.URL, Files: r.Files})
	case !allRefused(r) && s.pending != text:
		s.pending = text
		return
	default:
		s.show(control.NotApplied, cmp.Or(r.NotApplied[0].Error, r.NotApplied[0].File))
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

// say logs a state of an Envoy, unless the same state was logged last.
func (l *envoyLog) say(s *envoyState, text string, events ...event.Event) {
	if s.said == text {
		return
	}
	s.said = text
	for _, e := range events {
		l.log.Write(e)
	}
}

// moved handles moved files. before and now are Controller.moves before and after. An Envoy that was in sync
// and has acknowledged each step stays in sync. For other Envoys moved brings the next question forward.
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

// acknowledged reports whether answers confirm all steps of an Envoy.
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
