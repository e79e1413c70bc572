package watch

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/watch/operator"
)

// turnTo runs a reconcile after an edit.
func (w *watching) turnTo(t *testing.T, s *site, text string) control.Result {
	t.Helper()
	s.write(text)
	w.source.unread.All = true
	result, err := w.turn(t.Context(), string(notify.Change))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// execute executes a request, which must not fail.
func execute(t *testing.T, w *watching, asked any) control.Result {
	t.Helper()
	result, err := w.execute(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

var pause = control.Pause{By: "alice@host", Reason: "a test"}

// TestPauseMovesNothing checks that no file of a paused directory changes, whatever asks for it, and that a resume
// publishes what waits.
func TestPauseMovesNothing(t *testing.T) {
	s := newSite(t, web)
	w := watchingOf(t, s)
	w.turnTo(t, s, web)
	w.turnTo(t, s, other) // the cluster web is retired, and its trim is due
	execute(t, w, pause)
	if !w.nextTrim.IsZero() {
		t.Error("a trim is due during a pause")
	}
	before := filesOf(t, s.o.Out)
	if r := w.turnTo(t, s, web); r.Outcome != control.Waiting || !strings.Contains(r.Message, "is paused by alice@host since ") {
		t.Errorf("an edit: %+v", r)
	}
	if r := w.turnTo(t, s, wrong); r.Outcome != control.Refused {
		t.Errorf("an error: %+v", r)
	}
	w.retryHeld()
	w.turnTo(t, s, web)
	if _, err := w.turn(t.Context(), trimming); err != nil {
		t.Fatal(err)
	}
	if r := execute(t, w, control.RetryHeld{}); r.Outcome != control.Waiting {
		t.Errorf("a request to retry: %+v", r)
	}
	if now := filesOf(t, s.o.Out); now != before {
		t.Errorf("before:\n%s\nnow:\n%s", before, now)
	}
	if w.shown.Waits == nil || w.shown.Paused == nil || w.shown.Paused.By != "alice@host" {
		t.Errorf("it shows %+v, %+v", w.shown.Waits, w.shown.Paused)
	}
	if r := execute(t, w, control.Resume{By: "bob@host"}); r.Outcome != control.Published {
		t.Errorf("a resume: %+v", r)
	}
	if w.shown.Waits != nil || w.shown.Paused != nil || filesOf(t, s.o.Out) == before {
		t.Errorf("after the resume it shows %+v, %+v", w.shown.Waits, w.shown.Paused)
	}
	if r := execute(t, w, control.Resume{By: "bob@host"}); r.Outcome != control.Unchanged {
		t.Errorf("a second resume: %+v", r)
	}
}

// filesOf returns the files that Envoy reads, with times that each rename changes.
func filesOf(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	files, err := filepath.Glob(filepath.Join(out, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		info, ierr := os.Stat(file)
		if err := errors.Join(err, ierr); err != nil {
			t.Fatal(err)
		}
		b.WriteString(file + info.ModTime().String() + string(data))
	}
	return b.String()
}

// TestPauseOutlives checks that a pause holds in the next process, in a directory that replaces the old one, and for
// a Controller that publishes once.
func TestPauseOutlives(t *testing.T) {
	s := newSite(t, web)
	w := watchingOf(t, s)
	w.turnTo(t, s, web)
	execute(t, w, pause)
	w.Close()

	once := New(s.o)
	if err := once.Open(); err != nil {
		t.Fatal(err)
	}
	if err := once.Prepare(t.Context()); err != nil || !strings.Contains(once.Waits(), "a test") {
		t.Errorf("%q, %v", once.Waits(), err)
	}
	once.Close()

	next := watchingOf(t, s)
	if r := next.turnTo(t, s, other); r.Outcome != control.Waiting {
		t.Errorf("the next process: %+v", r)
	}
	if err := os.RemoveAll(s.o.Out); err != nil {
		t.Fatal(err)
	}
	if _, err := next.execute(t.Context(), control.Resume{}); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("a resume without a directory: %v", err)
	}
	if r := next.turnTo(t, s, other); r.Outcome != control.Waiting {
		t.Errorf("after the directory was replaced: %+v", r)
	}
	if is, err := operator.ShownIn(s.o.Out); err != nil || is.Paused == nil {
		t.Errorf("the new directory: %v, %v", is, err)
	}
}

// TestPauseEnds checks that a pause with a length ends by itself, once, whatever the time of the day is.
func TestPauseEnds(t *testing.T) {
	s := newSite(t, web)
	w := watchingOf(t, s)
	day, up := time.Now(), time.Hour
	w.clock = operator.Clock{Day: func() time.Time { return day }, Uptime: func() (string, time.Duration) { return "boot", up }}
	w.turnTo(t, s, web)
	with := pause
	with.For = 3600
	execute(t, w, with)
	w.turnTo(t, s, other)
	day = day.Add(24 * time.Hour)
	timer, stop := w.pauseTimer()
	defer stop()
	if timer == nil {
		t.Fatal("no timer")
	}
	w.pauseMayEnd(t.Context())
	if w.shown.Waits == nil {
		t.Error("a clock that is set forward ends the pause")
	}
	w.turnTo(t, s, other)
	if until := w.shown.Paused.Until; !until.Equal(day.UTC().Round(0).Add(time.Hour)) {
		t.Errorf("it shows %s as the end, and it is %s", until, day)
	}
	day, up = day.Add(-48*time.Hour), up+time.Hour
	w.pauseMayEnd(t.Context())
	if w.shown.Waits != nil || w.shown.Paused != nil || w.shown.Last.Reason != resuming {
		t.Errorf("after the end it shows %+v, %+v", w.shown.Waits, w.shown.Paused)
	}
	if timer, _ := w.pauseTimer(); timer != nil {
		t.Error("a timer without a pause")
	}
}

// TestDecideAlone checks the decisions in a directory into which no watch publishes.
func TestDecideAlone(t *testing.T) {
	s := newSite(t, web)
	w := watchingOf(t, s)
	w.turnTo(t, s, web)
	if _, err := Pause(s.o.Out, pause); err == nil {
		t.Error("a pause while a watch has locked the directory")
	} else if _, ok := errors.AsType[*publish.LockedError](err); !ok {
		t.Error(err)
	}
	w.Close()
	if r, err := Pause(s.o.Out, pause); err != nil || r.Outcome != control.Paused || r.Snapshot != w.publishedID() {
		t.Errorf("%+v, %v", r, err)
	}
	for _, wrong := range []control.Pause{pause, {By: "a@b"}, {Reason: "x"}, {By: "a@b", Reason: strings.Repeat("x", 2000)}, {By: "a@b", Reason: "x", For: 1e12}, {By: "a@b", Reason: "x", For: -1}} {
		if _, err := Pause(s.o.Out, wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		} else if _, ok := errors.AsType[*control.ConflictError](err); !ok {
			t.Error(err)
		}
	}
	for _, want := range []control.Outcome{control.Resumed, control.Unchanged} {
		if r, err := Resume(s.o.Out, control.Resume{By: "bob@host"}); err != nil || r.Outcome != want {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if _, err := Pause(s.o.Source.Path, pause); err == nil || !strings.Contains(err.Error(), "nothing was published into") {
		t.Error(err)
	}
}

// TestDecisionsInForce: the log of a watch that starts names the decisions that are in force, and what waits for one.
func TestDecisionsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		decide func(w *watching, s *site)
		want   string
	}{
		"none":  {func(*watching, *site) {}, ""},
		"pause": {func(w *watching, _ *site) { execute(t, w, pause) }, `paused="by alice@host since `},
		"a pause that is over": {func(w *watching, _ *site) {
			execute(t, w, control.Pause{By: "alice@host", Reason: "a test", For: 1e-9})
		}, ""},
		"pin": {func(w *watching, _ *site) {
			execute(t, w, control.Rollback{By: "alice@host", Reason: "a test", AllowRemoval: true})
		}, `pinned="to entry `},
		"guard": {func(w *watching, s *site) { w.turnTo(t, s, web) }, `guarded="change `},
		"pause and approval": {func(w *watching, s *site) {
			w.turnTo(t, s, web)
			execute(t, w, pause)
			execute(t, w, approval(w.shown.Guarded.Change))
		}, `approved="for change `},
		"trial": {func(w *watching, s *site) {
			w.options.ConfirmWithin = time.Hour
			w.turnTo(t, s, web+edge+"---\n"+third)
		}, `trial="snapshot `},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := newGuarded(t)
			c.decide(w, s)
			w.Close()
			var log bytes.Buffer
			s.o.Log = event.New(slog.NewTextHandler(&log, nil))
			watchingOf(t, s).sayDecisions()
			if got := log.String(); strings.Contains(got, "event=decisions-kept ") != (c.want != "") || !strings.Contains(got, c.want) {
				t.Errorf("want %s:\n%s", c.want, got)
			}
		})
	}
}
