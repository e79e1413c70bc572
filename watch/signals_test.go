package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/notify"
)

// TestHangupIsAnswered checks that, after SIGHUP, the log has an event for each outcome, even for an outcome
// that was logged before.
func TestHangupIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string // the source tree before SIGHUP and after
		was, is       error  // of the settings, before and after
		strict        bool   // WarningsAsErrors
		held          string // the source tree that Envoy refuses before SIGHUP; empty for none
		refuses       bool   // Envoy refuses the change
		down          bool   // no Envoy answers
		want          []string
	}{
		"published":       {before: web, after: other, want: []string{"published"}},
		"unchanged":       {before: web, after: web, want: []string{"unchanged"}},
		"invalid":         {before: web, after: wrong, want: []string{"finding", "source-invalid"}},
		"still invalid":   {before: wrong, after: wrong, want: []string{"finding", "source-invalid"}},
		"valid again":     {before: wrong, after: web, want: []string{"source-valid", "published"}},
		"no warning more": {before: warned, after: web, strict: true, want: []string{"source-valid", "published"}},
		"failed":          {before: web, after: other, is: errSettings, want: []string{"failed"}},
		"still failed":    {before: web, after: web, was: errSettings, is: errSettings, want: []string{"failed"}},
		"recovered":       {before: web, after: web, was: errSettings, want: []string{"published", "recovered"}},
		"refused":         {before: web, after: other, refuses: true, want: []string{"rolled-back", "finding"}},
		"held":            {before: web, held: other, after: other, refuses: true, want: []string{"rolled-back", "finding"}},
		"held no more":    {before: web, held: other, after: other, want: []string{"published", "refusal-ended"}},
		"not the held":    {before: web, held: other, after: web, want: []string{"unchanged", "refusal-ended"}},
		"held, invalid":   {before: web, held: other, after: wrong, want: []string{"finding", "source-invalid"}},
		"Envoy down":      {before: web, after: other, down: true, want: []string{"published"}},
		"down, unchanged": {before: web, after: web, down: true, want: []string{"unchanged"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.before)
			s.o.WarningsAsErrors, s.o.TrimDelay = c.strict, time.Hour
			var log bytes.Buffer
			s.o.Log = event.New(slog.NewTextHandler(&log, nil))
			envoys := noAnswers
			s.o.Confirm = func(of publish.Refusal) publish.Confirmer { return envoys.confirmer(of) }
			w := watchingOf(t, s)
			settings := c.was
			w.source.options.Reload = func() ([]Options, bool, error) { return nil, false, settings }
			if _, err := w.turn(t.Context(), starting); !errors.Is(err, c.was) {
				t.Fatal(err)
			}
			settings = c.is
			if c.held != "" {
				envoys.confirms, envoys.refuses = true, 0
				s.write(c.held)
				if result, err := w.turn(t.Context(), string(notify.Rescan)); err != nil || result.Outcome != control.Refused {
					t.Fatalf("%+v, %v", result, err)
				}
			}
			s.write(c.after)
			envoys = noAnswers
			envoys.confirms, envoys.silent = c.refuses || c.down, c.down
			if c.refuses {
				envoys.refuses = 0
			}
			log.Reset()
			w.heed(t.Context(), news{hangup, w.source.want(hangup)})
			var got []string
			for _, m := range regexp.MustCompile(`event=(\S+)`).FindAllStringSubmatch(log.String(), -1) {
				if m[1] != "step-published" {
					got = append(got, m[1])
				}
			}
			if strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("%v, want %v\n%s", got, c.want, &log)
			}
		})
	}
}

const warned = web + "http2_protocol_options: {}\n"

var errSettings = errors.New("the settings are wrong")

// TestReport checks that SIGUSR1 logs the state of each target, even during a reconcile that hangs.
func TestReport(t *testing.T) {
	s := newSite(t, web)
	log := &heard{more: make(chan struct{}, 1)}
	s.o.Log = event.New(slog.NewTextHandler(log, nil))
	hangs := make(chan struct{})
	report := make(chan os.Signal, 1)
	reads := 0
	ended := make(chan error, 1)
	hangup := make(chan os.Signal, 1)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		ended <- Watch(ctx, []Options{s.o}, WatchOptions{
			Log: s.o.Log, Report: report, Hangup: hangup,
			Reload: func() ([]Options, bool, error) {
				if reads++; reads > 1 {
					<-hangs
				}
				return nil, false, nil
			},
		})
	}()
	log.wait(t, "event=published ")
	s.waitFor(func(w control.Watch) bool { return w.Running == nil && w.Last != nil })
	report <- os.Interrupt
	log.wait(t, `msg="the state of the watch" event=status faults=[] snapshot=v`)
	log.wait(t, " pass=published ")
	hangup <- os.Interrupt
	s.waitFor(func(w control.Watch) bool { return w.Running != nil })
	report <- os.Interrupt
	log.wait(t, "event=status")
	log.wait(t, " running=SIGHUP")
	close(hangs)
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestBeat checks that Beat is called after the first reconcile and after each event, and not during a reconcile that
// hangs.
func TestBeat(t *testing.T) {
	s := newSite(t, web)
	hangs, hangup, beats := make(chan struct{}), make(chan os.Signal, 1), make(chan string, 100)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	reads := 0
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, []Options{s.o}, WatchOptions{
			Hangup: hangup, Beat: func(target string) { beats <- target },
			Reload: func() ([]Options, bool, error) {
				if reads++; reads > 1 {
					<-hangs
				}
				return nil, false, nil
			},
		})
	}()
	<-beats
	if w, err := control.Ask(ctx, s.o.Out); err != nil || w.Last == nil || w.Last.Reason != starting {
		t.Errorf("the first beat comes before the end of the first reconcile: %+v, %v", w.Last, err)
	}
	hangup <- os.Interrupt
	s.waitFor(func(w control.Watch) bool { return w.Running != nil && w.Running.Reason == "SIGHUP" })
	for len(beats) > 0 {
		<-beats // from before the reconcile
	}
	s.waitFor(func(w control.Watch) bool { return w.Running != nil })
	if len(beats) > 0 {
		t.Error("the watch beats during a reconcile that hangs")
	}
	close(hangs)
	<-beats
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// waitFor waits until the control socket shows a state.
func (s *site) waitFor(is func(control.Watch) bool) {
	s.t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w, err := control.Ask(s.t.Context(), s.o.Out)
		if err == nil && is(w) {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("the watch says %+v, %v", w, err)
		}
	}
}
