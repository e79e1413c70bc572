package watch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/watch/operator"
	"xdspub/xds"
)

// setClock sets the time of the day of a watching.
func (w *watching) setClock(at time.Time) {
	w.clock = operator.Clock{Day: func() time.Time { return at }, Uptime: operator.SystemClock().Uptime}
}

// The weekend of the tests, and times before, in and after one.
var (
	friday   = time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC)
	saturday = friday.Add(24 * time.Hour)
	monday   = friday.Add(3 * 24 * time.Hour)
)

// weekend returns the window from Friday 17:00 to Monday 8:00.
func weekend(t *testing.T) freeze.Windows {
	t.Helper()
	zone, err := freeze.ZoneNamed("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return freeze.Windows{{
		From: freeze.Moment{Weekly: true, Weekday: time.Friday, Minute: 17 * 60}, To: freeze.Moment{Weekly: true, Weekday: time.Monday, Minute: 8 * 60},
		Zone: zone, Reason: "weekend",
	}}
}

// newFrozenSite returns a site with a history and a freeze on weekends, and a watching that has published web before
// the weekend.
func newFrozenSite(t *testing.T) (*site, *watching) {
	t.Helper()
	s := newSite(t, web)
	s.o.History = history.Options{Keep: 50}
	s.o.Freeze = weekend(t)
	w := watchingOf(t, s)
	w.setClock(friday)
	if r := w.turnTo(t, s, web); r.Outcome != control.Published {
		t.Fatalf("%+v", r)
	}
	return s, w
}

// TestFreeze checks that a change waits during a window, and goes out by itself when the window ends.
func TestFreeze(t *testing.T) {
	s, w := newFrozenSite(t)
	w.setClock(saturday)
	w.freezeMayChange(t.Context())
	if w.shown.Frozen == nil || w.shown.Frozen.Reason != "weekend" || len(w.shown.Faults(saturday)) > 0 {
		t.Errorf("it shows %+v, %q", w.shown.Frozen, w.shown.Faults(saturday))
	}
	before := filesOf(t, s.o.Out)
	r := w.turnTo(t, s, other)
	if r.Outcome != control.Waiting || !strings.Contains(r.Message, "is frozen until 2026-11-30T08:00:00+01:00 (Europe/Berlin): weekend; xdspub resume --out ") {
		t.Errorf("an edit: %+v", r)
	}
	if r := w.turnTo(t, s, wrong); r.Outcome != control.Refused {
		t.Errorf("an error: %+v", r)
	}
	w.retryHeld()
	w.turnTo(t, s, other)
	if filesOf(t, s.o.Out) != before || w.shown.Waits == nil || len(w.shown.Faults(saturday)) != 2 {
		t.Errorf("it shows %+v, %q", w.shown.Waits, w.shown.Faults(saturday))
	}
	w.setClock(monday.Add(-8*time.Hour - time.Minute))
	w.freezeMayChange(t.Context())
	if w.shown.Waits == nil {
		t.Error("published before the end")
	}
	w.setClock(monday.Add(-8 * time.Hour)) // 8:00 in Berlin
	for w.shown.Frozen != nil {            // the timer is due
		w.next(t.Context())
	}
	isPublished(t, s, "other")
	if w.shown.Frozen != nil || w.shown.Waits != nil || w.shown.Last.Reason != thawing {
		t.Errorf("after the end it shows %+v, %+v", w.shown.Frozen, w.shown.Waits)
	}
}

// TestFreezeAndClock checks a clock that somebody sets: into a window, out of the window, and back before it.
func TestFreezeAndClock(t *testing.T) {
	s, w := newFrozenSite(t)
	w.setClock(saturday)
	if r := w.turnTo(t, s, other); r.Outcome != control.Waiting {
		t.Errorf("a clock that is set forward into the window: %+v", r)
	}
	w.setClock(friday)
	w.freezeMayChange(t.Context())
	isPublished(t, s, "other")
	w.setClock(saturday)
	w.freezeMayChange(t.Context())
	if w.turnTo(t, s, web); w.shown.Waits == nil {
		t.Error("nothing waits")
	}
	w.setClock(monday.Add(365 * 24 * time.Hour)) // a Monday or Tuesday
	w.freezeMayChange(t.Context())
	isPublished(t, s, "web")
	w.setClock(saturday.AddDate(-1, 0, 0)) // a Friday
	w.freezeMayChange(t.Context())
	if w.shown.Waits != nil {
		t.Error("what is published waits")
	}
}

// TestFreezeMends checks that files which somebody has removed are restored during a freeze, also by a process that has
// published nothing, and that a first snapshot is not held.
func TestFreezeMends(t *testing.T) {
	s, w := newFrozenSite(t)
	clusters := filepath.Join(s.o.Out, "cds", "cds.json")
	lose := func(w *watching) {
		t.Helper()
		if err := os.Remove(clusters); err != nil {
			t.Fatal(err)
		}
		w.setClock(saturday)
		if r := w.turnTo(t, s, other); r.Outcome != control.Waiting {
			t.Errorf("%+v", r)
		}
		isPublished(t, s, "web")
	}
	lose(w)
	lose(w)
	w.Close()
	next := watchingOf(t, s)
	lose(next)
	next.setClock(monday)
	next.freezeMayChange(t.Context())
	isPublished(t, s, "other")
	next.Close()

	if err := os.RemoveAll(s.o.Out); err != nil {
		t.Fatal(err)
	}
	first := watchingOf(t, s)
	first.setClock(saturday)
	if r := first.turnTo(t, s, web); r.Outcome != control.Published {
		t.Errorf("a first snapshot: %+v", r)
	}
}

// TestFreezeTrims checks that a trim goes on during a freeze.
func TestFreezeTrims(t *testing.T) {
	s, w := newFrozenSite(t)
	w.turnTo(t, s, other) // the cluster web is retired
	w.setClock(saturday)
	w.turnTo(t, s, third)
	if data, err := os.ReadFile(filepath.Join(s.o.Out, "cds", "cds.json")); err != nil || strings.Contains(string(data), `"web"`) {
		t.Errorf("%v: %s", err, data)
	}
	isPublished(t, s, "other")
}

// TestFreezeInterrupted checks that a publish which a window interrupts is completed.
func TestFreezeInterrupted(t *testing.T) {
	s, w := newFrozenSite(t)
	s.write(other)
	w.source.unread.All = true
	ctx, stop := context.WithCancel(t.Context())
	w.options.Confirm, w.state = func(publish.Refusal) publish.Confirmer { return stopper{stop} }, unknown
	w.Configure(w.options)
	if _, err := w.turn(ctx, "change"); err == nil {
		t.Fatal("the change was not interrupted")
	}
	w.Close()
	next := watchingOf(t, s)
	next.setClock(saturday)
	if r := next.turnTo(t, s, other); r.Outcome != control.Published {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "other")
}

// TestFreezeIsOverridden checks that an operator publishes once during a freeze, and rolls back.
func TestFreezeIsOverridden(t *testing.T) {
	s, w := newFrozenSite(t)
	w.setClock(saturday)
	w.turnTo(t, s, other)
	if _, err := w.execute(t.Context(), control.Resume{By: "alice@host"}); err == nil || !strings.Contains(err.Error(), "is frozen until ") {
		t.Errorf("a resume without a reason: %v", err)
	}
	if _, err := w.execute(t.Context(), control.Resume{By: "alice@host", Reason: strings.Repeat("x", 2000)}); err == nil {
		t.Error("a long reason is accepted")
	}
	if r := execute(t, w, control.Resume{By: "alice@host", Reason: "incident 42"}); r.Outcome != control.Published {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "other")
	h, err := history.Read(s.o.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if last := h.Items()[0]; last.Reason != "incident 42" || last.By != "alice@host" || last.Command != "resume" {
		t.Errorf("the history has %+v", last)
	}
	if r := w.turnTo(t, s, third); r.Outcome != control.Waiting {
		t.Errorf("the next change: %+v", r)
	}
	if r := execute(t, w, back); r.Outcome != control.Published {
		t.Errorf("a rollback: %+v", r)
	}
	isPublished(t, s, "web")
	if r := w.turnTo(t, s, web); r.Outcome != control.Waiting || w.shown.Pinned == nil {
		t.Errorf("a change ends a pin during a freeze: %+v", r)
	}
	if r := execute(t, w, control.Resume{By: "alice@host"}); r.Outcome != control.Published || w.shown.Pinned != nil {
		t.Errorf("a resume after a rollback: %+v", r) // the source tree is what is published
	}
}

// TestFreezeOfServer checks a Server with an output directory, with Options.State, and with neither. The first snapshot
// is served, and changes wait. A server that begins during a freeze serves what was published, if a directory tells.
func TestFreezeOfServer(t *testing.T) {
	for _, keeps := range []string{"nothing", "state", "out"} {
		s := newSite(t, web)
		s.o.Freeze, s.o.History = weekend(t), history.Options{Keep: 50}
		server := &critic{}
		s.o.Server = server
		if keeps != "out" {
			s.o.Out = ""
		}
		if keeps == "state" {
			s.o.State = t.TempDir()
		}
		w := watchingOf(t, s)
		w.setClock(saturday)
		if r := w.turnTo(t, s, web); r.Outcome != control.Published {
			t.Errorf("%s: the first snapshot: %+v", keeps, r)
		}
		if r := w.turnTo(t, s, other); r.Outcome != control.Waiting || server.now.Lookup(xds.Cluster, "web") == nil {
			t.Errorf("%s: a change: %+v", keeps, r)
		}
		w.Close()
		server = &critic{}
		s.o.Server = server
		next := watchingOf(t, s)
		next.setClock(saturday)
		if _, err := next.serveLast(t.Context()); err != nil {
			t.Error(err)
		}
		want := control.Waiting
		if keeps == "nothing" {
			want = control.Published
		}
		r := next.turnTo(t, s, other)
		if r.Outcome != want || server.now == nil || (want == control.Waiting) != (server.now.Lookup(xds.Cluster, "web") != nil) {
			t.Errorf("%s: after a restart: %+v, served %v", keeps, r, server.served)
		}
		next.setClock(monday)
		next.freezeMayChange(t.Context())
		if server.now.Lookup(xds.Cluster, "other") == nil {
			t.Errorf("%s: after the freeze it serves %v", keeps, server.served)
		}
	}
}

// TestFreezeParts checks that the changes which WhileRefused admits go on during a freeze: beside changes that wait,
// and alone, in this process and in the next one.
func TestFreezeParts(t *testing.T) {
	s := newSite(t, "")
	s.o.Freeze, s.o.WhileRefused = weekend(t), []string{"endpoints"}
	tree := func(timeout, port int) string {
		return "---\n" + unit{kind: "cluster", n: 1, content: timeout}.text() + "---\n" + unit{kind: "endpoints", n: 1, content: port}.text()
	}
	isOut := func(timeout, port int) {
		t.Helper()
		for file, want := range map[string]string{"cds/cds.json": fmt.Sprintf(`"connect_timeout":"%ds"`, timeout+1), "eds/c1/eds.json": fmt.Sprintf(`"port_value":%d`, port+1)} {
			data, err := os.ReadFile(filepath.Join(s.o.Out, file))
			if err != nil || !strings.Contains(strings.ReplaceAll(string(data), " ", ""), want) {
				t.Errorf("%v, want %s in\n%s", err, want, data)
			}
		}
	}
	w := watchingOf(t, s)
	w.setClock(friday)
	w.turnTo(t, s, tree(1, 1))
	w.setClock(saturday)
	if r := w.turnTo(t, s, tree(1, 2)); r.Outcome != control.Published || w.shown.Waits != nil {
		t.Errorf("only endpoints: %+v", r)
	}
	r := w.turnTo(t, s, tree(2, 3))
	if r.Outcome != control.Waiting || r.Part == nil || r.Part.Waits != "" || !strings.HasSuffix(r.Message, "; faultless changes of endpoints go on") {
		t.Errorf("endpoints and a cluster: %+v", r)
	}
	if faults := w.shown.Faults(saturday); !strings.HasSuffix(strings.Join(faults, "\n"), "waits; faultless changes of endpoints go on") {
		t.Errorf("it shows %q", faults)
	}
	isOut(1, 3)
	if err := os.Remove(filepath.Join(s.o.Out, "cds", "cds.json")); err != nil {
		t.Fatal(err)
	}
	w.turnTo(t, s, tree(2, 4))
	isOut(1, 4) // with the mended file
	w.Close()
	next := watchingOf(t, s)
	next.setClock(saturday)
	if r := next.turnTo(t, s, tree(2, 5)); r.Outcome != control.Waiting {
		t.Errorf("the next process: %+v", r)
	}
	isOut(1, 5)
	if r := next.turnTo(t, s, tree(2, 6)+"---\nname: x\n"); r.Outcome != control.Refused {
		t.Errorf("an invalid tree: %+v", r)
	}
	next.turnTo(t, s, tree(2, 7))
	isOut(1, 7)
	next.setClock(monday)
	next.freezeMayChange(t.Context())
	isOut(2, 7)
	if m, err := publish.ReadManifest(s.o.Out); err != nil || m.Part != nil {
		t.Errorf("%v, the record has the part %+v", err, m.Part)
	}
}

// TestOverrideIsLogged: the log says that an operator publishes during a freeze only if something is published that the
// freeze would hold: a whole source tree, or the folder of an owner.
func TestOverrideIsLogged(t *testing.T) {
	s, w := newFrozenSite(t)
	var log bytes.Buffer
	w.log = event.New(slog.NewTextHandler(&log, nil))
	w.setClock(saturday)
	through := control.Resume{By: "alice@host", Reason: "incident 42"}
	says := func(when string, want int) {
		t.Helper()
		execute(t, w, through)
		if n := strings.Count(log.String(), "event=freeze-overridden "); n != want {
			t.Errorf("%s: %d events, want %d\n%s", when, n, want, &log)
		}
	}
	says("nothing waits", 0)
	w.turnTo(t, s, wrong)
	says("the tree is invalid", 0)
	w.turnTo(t, s, other)
	says("a change waits", 1)
	isPublished(t, s, "other")
	says("once more", 1)
	if err := os.Rename(s.o.Source.Path, s.o.Source.Path+".gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.execute(t.Context(), through); err == nil || strings.Count(log.String(), "event=freeze-overridden ") != 1 {
		t.Errorf("nothing can be read: %v\n%s", err, &log)
	}
}
