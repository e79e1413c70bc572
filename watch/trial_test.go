package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/watch/operator"
)

const within = 10 * time.Minute

// machine has the clocks of a machine that a test sets.
type machine struct {
	day  time.Time
	boot string
	up   time.Duration
}

func newMachine() *machine {
	return &machine{time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), "first", time.Hour}
}

func (m *machine) clock() operator.Clock {
	return operator.Clock{Day: func() time.Time { return m.day }, Uptime: func() (string, time.Duration) { return m.boot, m.up }}
}

// runs lets time pass, and then lets w look at its clock.
func (m *machine) runs(t *testing.T, w *watching, d time.Duration) {
	m.day, m.up = m.day.Add(d), m.up+d
	w.trialMayEnd(t.Context())
}

// newTrialSite returns a site with a history and ConfirmWithin, and a watching that has published web.
func newTrialSite(t *testing.T, m *machine) (*site, *watching) {
	t.Helper()
	s := newSite(t, web)
	s.o.History, s.o.ConfirmWithin, s.o.TrimDelay, s.o.By = history.Options{Keep: 50}, within, time.Hour, "deploy@host"
	w := nextWatching(t, s, m)
	w.turnTo(t, s, web)
	if w.shown.Trial != nil {
		t.Fatalf("the first snapshot is on trial: %+v", w.shown.Trial)
	}
	return s, w
}

// nextWatching returns the watching of another process.
func nextWatching(t *testing.T, s *site, m *machine) *watching {
	t.Helper()
	w := watchingOf(t, s)
	w.clock = m.clock()
	return w
}

func confirmationOf(w *watching) control.Confirm { return confirmOf(w.shown.Trial.Snapshot) }

var cancelNow = control.Cancel{By: "alice@host", Reason: "a test"}

// TestTrial checks the life of a trial: another change waits, the end of the time restores the snapshot before, and the
// trees that were read until then wait. A confirmation ends the trial, and lets the change that waits be published.
func TestTrial(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	r := w.turnTo(t, s, other)
	if r.Outcome != control.Published || !strings.Contains(r.Message, "awaits confirmation until 2030-01-02T03:14:05Z") {
		t.Errorf("%+v", r)
	}
	if trial := w.shown.Trial; trial == nil || trial.Snapshot != r.Snapshot || trial.By != "deploy@host" || trial.Overdue {
		t.Fatalf("it shows %+v", trial)
	}
	r = w.turnTo(t, s, third)
	if r.Outcome != control.Waiting || !strings.Contains(r.Message, "xdspub confirm --out ") || w.shown.Waits == nil {
		t.Errorf("a second change: %+v", r)
	}
	isPublished(t, s, "other")
	m.runs(t, w, within-time.Second)
	isPublished(t, s, "other")
	m.runs(t, w, time.Second)
	isPublished(t, s, "web")
	if w.shown.Trial != nil || w.shown.Pinned == nil || !strings.Contains(w.shown.Pinned.Reason, "nobody confirmed snapshot ") {
		t.Errorf("after the time it shows %+v, %+v", w.shown.Trial, w.shown.Pinned)
	}
	for _, text := range []string{third, other} {
		if r := w.turnTo(t, s, text); r.Outcome != control.Waiting {
			t.Errorf("a tree that was read before: %+v", r)
		}
	}
	_, err := w.execute(t.Context(), control.Confirm{By: "alice@host", Reason: "x", Snapshot: r.Snapshot})
	if conflict, ok := errors.AsType[*control.ConflictError](err); !ok || !strings.Contains(conflict.Reason, "was undone by deploy@host since ") {
		t.Errorf("a late confirmation: %v", err)
	}
	execute(t, w, control.Resume{By: "alice@host"})
	isPublished(t, s, "other")
	w.turnTo(t, s, third)
	r = execute(t, w, confirmationOf(w))
	if r.Outcome != control.Confirmed || r.Trial == nil || !strings.Contains(r.Message, "; what has waited: snapshot ") {
		t.Errorf("a confirmation: %+v", r)
	}
	isPublished(t, s, "third")
	if again := execute(t, w, confirmationOf(w)); again.Outcome != control.Confirmed || again.Trial != nil {
		t.Errorf("the last confirmation: %+v", again)
	}
	m.runs(t, w, 10*within)
	isPublished(t, s, "third")
	var outcomes []string
	for _, i := range read(t, s).Items() {
		outcomes = append(outcomes, fmt.Sprintf("%s %s %s", i.Command, i.Outcome(), i.Notes.By))
	}
	want := []string{" confirmed alice@host", " confirmed alice@host", "undo unconfirmed ", " undone deploy@host", " unconfirmed "}
	if !slices.Equal(outcomes, want) {
		t.Errorf("the history has %q", outcomes)
	}
}

// TestTrialRequests checks the answers to operators who are wrong, late or not alone.
func TestTrialRequests(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	conflict := func(asked any, want string) {
		t.Helper()
		_, err := w.execute(t.Context(), asked)
		if is, ok := errors.AsType[*control.ConflictError](err); !ok || !strings.Contains(is.Reason, want) {
			t.Errorf("%T: %v, want %q", asked, err, want)
		}
	}
	for _, asked := range []any{control.Confirm{By: "a@b", Reason: "x", Snapshot: "v123"}, cancelNow, control.Extend{By: "a@b", Reason: "x", For: 1}} {
		conflict(asked, "awaits confirmation")
	}
	w.turnTo(t, s, other)
	id := w.shown.Trial.Snapshot
	conflict(control.Confirm{By: "a@b", Reason: "x", Snapshot: "v00000000"}, `snapshot "v00000000" does not await confirmation: snapshot `+id)
	conflict(control.Confirm{By: "a@b", Reason: "x", Snapshot: id[:3]}, "too short")
	conflict(control.Confirm{By: "a@b", Reason: "x"}, "is missing")
	conflict(control.Confirm{By: "a@b", Snapshot: id}, "the reason is empty")
	conflict(control.Extend{By: "a@b", Reason: "x", For: 1}, "which is later than 1s from now")
	conflict(control.Extend{By: "a@b", Reason: "x", For: 1e9}, "168h0m0s at most")
	conflict(control.Cancel{By: "a@b", Reason: "x", Snapshot: "v00000000"}, "does not await confirmation")
	enter(t, w, read(t, s).Items()[0], func(e *history.Entry) { e.Snapshot = id[:5] + "-another" })
	conflict(control.Confirm{By: "a@b", Reason: "x", Snapshot: id[:5]}, "is the beginning of several ids")
	m.day = m.day.Add(-24 * time.Hour)
	if r := execute(t, w, control.Extend{By: "a@b", Reason: "x", For: 2 * within.Seconds()}); r.Outcome != control.Extended || r.Trial == nil || r.Trial.Until != m.day.Add(2*within) {
		t.Errorf("%+v", r)
	}
	m.runs(t, w, 2*within-time.Second)
	isPublished(t, s, "other")
	m.up += 2 * time.Second
	conflict(confirmationOf(w), "it is too late")
	conflict(control.Extend{By: "a@b", Reason: "x", For: 100}, "it is too late")
	waited := confirmationOf(w)
	waited.Waited = 2 * time.Second // the watch was busy
	if r := execute(t, w, waited); r.Outcome != control.Confirmed {
		t.Errorf("%+v", r)
	}
	second := confirmOf(id)
	second.By = "bob@host"
	if r := execute(t, w, second); r.Outcome != control.Unchanged || !strings.Contains(r.Message, "was confirmed by alice@host since ") {
		t.Errorf("a second operator: %+v", r)
	}
	conflict(cancelNow, "was confirmed by alice@host")
	w.turnTo(t, s, third)
	if r := execute(t, w, cancelNow); r.Outcome != control.Undone || r.Pinned == nil || !strings.HasPrefix(r.Message, "undone: entry ") {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "other")
	if r := execute(t, w, cancelNow); r.Outcome != control.Unchanged {
		t.Errorf("a second cancel: %+v", r)
	}
}

func confirmOf(id string) control.Confirm {
	return control.Confirm{By: "alice@host", Reason: "a test", Snapshot: id}
}

// TestTrialAlone checks confirm, extend and cancel in a directory into which no watch publishes.
func TestTrialAlone(t *testing.T) {
	s, w := newTrialSite(t, newMachine())
	w.clock = operator.SystemClock()
	id := w.turnTo(t, s, other).Snapshot
	if _, err := Confirm(s.o.Out, confirmOf(id)); err == nil {
		t.Error("a confirmation while a watch has locked the directory")
	} else if _, ok := errors.AsType[*publish.LockedError](err); !ok {
		t.Error(err)
	}
	w.Close()
	if r, err := Extend(s.o.Out, control.Extend{By: "a@b", Reason: "x", For: 7200}); err != nil || r.Outcome != control.Extended {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Confirm(s.o.Out, confirmOf(id)); err != nil || r.Outcome != control.Confirmed {
		t.Errorf("%+v, %v", r, err)
	}
	next := watchingOf(t, s)
	next.turnTo(t, s, third)
	next.Close()
	if r, err := Cancel(t.Context(), s.o, cancelNow); err != nil || r.Outcome != control.Undone {
		t.Errorf("%+v, %v", r, err)
	}
	isPublished(t, s, "other")
	if _, err := Cancel(t.Context(), s.o, control.Cancel{By: "a@b", Reason: "x", Snapshot: "v0000"}); err == nil || !strings.Contains(err.Error(), "nothing in ") {
		t.Errorf("%v", err)
	}
}

// TestTrialPaused checks that the end of the time holds during a pause, and that the pause goes on.
func TestTrialPaused(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	w.turnTo(t, s, other)
	if r := execute(t, w, pause); !strings.Contains(r.Message, "the pause does not stop the undo") {
		t.Errorf("%+v", r)
	}
	m.runs(t, w, within)
	isPublished(t, s, "web")
	if w.shown.Paused == nil || w.shown.Pinned == nil {
		t.Errorf("it shows %+v, %+v", w.shown.Paused, w.shown.Pinned)
	}
	if r := w.turnTo(t, s, third); r.Outcome != control.Waiting {
		t.Errorf("%+v", r)
	}
}

// TestTrialRollback checks that a rollback ends a trial.
func TestTrialRollback(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	w.turnTo(t, s, other)
	execute(t, w, confirmationOf(w))
	w.turnTo(t, s, third)
	asked := back
	asked.Entry = read(t, s).Items()[2].ID
	execute(t, w, asked)
	isPublished(t, s, "web")
	m.runs(t, w, 2*within)
	isPublished(t, s, "web")
	if w.shown.Trial != nil || w.shown.Pinned == nil || w.shown.Pinned.By != back.By {
		t.Errorf("it shows %+v, %+v", w.shown.Trial, w.shown.Pinned)
	}
	if i := read(t, s).Items()[1]; i.Outcome() != history.RolledBack {
		t.Errorf("%+v", i)
	}
}

// TestTrialStuck checks a trial whose snapshot before can't be published any more: the snapshot on trial stays, and
// everybody sees why, until an operator decides.
func TestTrialStuck(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	w.turnTo(t, s, other)
	files, err := filepath.Glob(filepath.Join(s.o.Out, ".xdspub", "history", "*1-*.entry"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(files[0], whole[:len(whole)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.runs(t, w, within)
	isPublished(t, s, "other")
	trial := w.shown.Trial
	if trial == nil || trial.Stuck == "" || !trial.IsFault() || !strings.Contains(trial.String(), "can't be undone: ") {
		t.Fatalf("it shows %+v", trial)
	}
	if timer, _ := w.trialTimer(); timer != nil {
		t.Error("it tries again without an end")
	}
	if r := w.turnTo(t, s, third); r.Outcome != control.Waiting {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(files[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, w, cancelNow)
	isPublished(t, s, "web")
}

// TestTrialGuards checks that an undo removes what a change has added, although the guards refuse such a removal.
func TestTrialGuards(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	w.options.Guards, w.options.MaxRemoval = true, 50
	const listener = "---\n\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\nname: edge\n" +
		"address: {socket_address: {address: 127.0.0.1, port_value: 10000}}\n" +
		"filter_chains: [{filters: [{name: tcp, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, " +
		"stat_prefix: a, cluster: web}}]}]\n"
	if r := w.turnTo(t, s, web+listener); r.Outcome != control.Published {
		t.Fatalf("%+v", r)
	}
	if r := execute(t, w, cancelNow); r.Outcome != control.Undone {
		t.Errorf("%+v", r)
	}
	if data, err := os.ReadFile(filepath.Join(s.o.Out, "lds", "lds.json")); err != nil || strings.Contains(string(data), "edge") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestTrialUnread checks that a trial ends although the source tree can't be read.
func TestTrialUnread(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	w.turnTo(t, s, other)
	w.Close()
	next := nextWatching(t, s, m)
	if err := os.Rename(s.o.Source.Path, s.o.Source.Path+".gone"); err != nil {
		t.Fatal(err)
	}
	next.source.unread.All = true
	if _, err := next.turn(t.Context(), starting); err == nil {
		t.Fatal("the source tree was read")
	}
	m.runs(t, next, within)
	isPublished(t, s, "web")
	if next.shown.Trial != nil || next.shown.Pinned == nil {
		t.Errorf("it shows %+v, %+v", next.shown.Trial, next.shown.Pinned)
	}
}

// TestTrialLeaves checks trees that need no confirmation: the snapshot that is published already, after a restart with
// the option, and the first snapshot, whose message says so.
func TestTrialLeaves(t *testing.T) {
	m := newMachine()
	s := newSite(t, web)
	s.o.History = history.Options{Keep: 50}
	w := nextWatching(t, s, m)
	w.turnTo(t, s, web)
	w.Close()
	s.o.ConfirmWithin = within
	w = nextWatching(t, s, m)
	if w.turnTo(t, s, web); w.shown.Trial != nil {
		t.Errorf("what is published is on trial: %+v", w.shown.Trial)
	}
	if err := os.Remove(filepath.Join(s.o.Out, "cds", "cds.json")); err != nil {
		t.Fatal(err)
	}
	if w.turnTo(t, s, web); w.shown.Trial != nil {
		t.Errorf("a mended file is on trial: %+v", w.shown.Trial)
	}
	w.Close()
	if err := os.RemoveAll(filepath.Join(s.o.Out, ".xdspub", "history")); err != nil {
		t.Fatal(err)
	}
	w = nextWatching(t, s, m)
	w.turnTo(t, s, other) // as after a process that was killed before it wrote the history
	m.runs(t, w, within)
	isPublished(t, s, "web")
	first := newSite(t, web)
	first.o.History, first.o.ConfirmWithin = history.Options{Keep: 50}, within
	if r := watchingOf(t, first).turnTo(t, first, web); !strings.Contains(r.Message, "it needs no confirmation: nothing was published before") {
		t.Errorf("%+v", r)
	}
}

// TestTrialKilled checks a process that is killed when all files have moved, and before it has noted that: the trial
// goes on in the next process, which reads another source tree.
func TestTrialKilled(t *testing.T) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	s.write(other)
	checked, err := Tree([]Options{s.o}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := w.Plan(t.Context(), checked)
	if err == nil {
		_, err = w.beginTrial(t.Context(), checked, plan)
	}
	if err == nil {
		_, err = w.Publish(t.Context(), checked, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	w = nextWatching(t, s, m)
	if r := w.turnTo(t, s, third); r.Outcome != control.Waiting {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "other")
	m.runs(t, w, within)
	isPublished(t, s, "web")
}

// model says what must be published, by rules without a record, a history or a deadline.
type model struct {
	source, out string
	trial       *modelTrial
	pin         *modelPin
	paused      bool
}

type modelTrial struct {
	of, before string
	left       time.Duration
}

type modelPin struct {
	to    string
	waits []string
}

// turn publishes the source tree, if nothing keeps it.
func (m *model) turn() {
	if m.pin != nil && (m.paused || m.source == "" || slices.Contains(m.pin.waits, m.source)) {
		m.out = m.pin.to
		return
	}
	if m.source == "" || m.paused || m.trial != nil {
		return
	}
	if m.pin = nil; m.out != m.source {
		m.trial = &modelTrial{m.source, m.out, within}
	}
	m.out = m.source
}

// undo undoes the trial.
func (m *model) undo() {
	m.pin = &modelPin{m.trial.before, []string{m.trial.of, m.source}}
	m.out, m.trial = m.trial.before, nil
}

// TestTrialModel plays random histories of edits, operators, restarts, kills, boots and clocks that somebody sets, and
// compares what is published with a model after each step.
func TestTrialModel(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	var all plays
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playTrials(t, rand.New(rand.NewPCG(uint64(seed), 1)), &all) })
	}
	if t.Logf("%+v", all); min(all.undone, all.confirmed, all.killed) < rounds {
		t.Errorf("the histories try too little: %+v", all)
	}
}

// plays counts what the histories do.
type plays struct{ trials, undone, confirmed, killed int }

var treesOfTrials = []struct{ name, text string }{{"web", web}, {"other", other}, {"third", third}, {"", wrong}}

func playTrials(t *testing.T, random *rand.Rand, all *plays) {
	m := newMachine()
	s, w := newTrialSite(t, m)
	is, text := &model{source: "web", out: "web"}, web
	restart := func() {
		w.Close()
		w = nextWatching(t, s, m)
	}
	pass := func(d time.Duration) {
		m.day, m.up = m.day.Add(d), m.up+d
		if is.trial != nil {
			is.trial.left -= d
		}
	}
	for n := range 80 {
		had := is.trial
		var did string
		tree := treesOfTrials[random.IntN(len(treesOfTrials))]
		switch random.IntN(15) {
		case 0, 1, 2:
			did, is.source, text = "edit "+tree.name, tree.name, tree.text
		case 3, 4:
			d := time.Duration(random.IntN(8)) * time.Minute
			did = "time passes: " + d.String()
			pass(d)
		case 5:
			d := time.Duration(random.IntN(100)-50) * time.Hour
			did, m.day = "the clock is set by "+d.String(), m.day.Add(d)
		case 6:
			did = "restart"
			restart()
		case 7:
			did = "boot"
			m.boot, m.up = fmt.Sprint(n), time.Minute
			restart()
		case 8:
			did = "confirm"
			if is.trial != nil && is.trial.left > 0 {
				execute(t, w, confirmationOf(w))
				is.trial = nil
				all.confirmed++
			}
		case 9:
			did = "cancel"
			if is.trial != nil && is.trial.left > 0 {
				execute(t, w, cancelNow)
				is.undo()
				all.undone++
			}
		case 10:
			if did = "pause"; !is.paused {
				execute(t, w, pause)
				is.paused = true
			}
		case 11, 12, 13:
			did = "resume"
			execute(t, w, control.Resume{By: "bob@host"})
			is.paused, is.pin = false, nil
		case 14:
			did = "killed during a publish of " + tree.name
			if is.trial == nil && is.pin == nil && !is.paused && tree.name != "" {
				is.source, text = tree.name, tree.text
				w = killed(t, s, w, m, text)
				all.killed++
			}
		}
		w.turnTo(t, s, text)
		is.turn()
		if is.trial != nil && is.trial.left <= 0 {
			is.undo()
			all.undone++
		}
		w.trialMayEnd(t.Context())
		if is.trial != nil && had != is.trial {
			all.trials++
		}
		t.Logf("%d: %s: %+v %+v", n, did, is.trial, is.pin)
		compareTrials(t, s, w, m, is)
		if t.Failed() {
			return
		}
	}
}

// killed returns the watching after a process that was killed when it had moved the first files of a tree.
func killed(t *testing.T, s *site, w *watching, m *machine, text string) *watching {
	t.Helper()
	s.write(text)
	w.source.unread.All = true
	ctx, stop := context.WithCancel(t.Context())
	w.options.Confirm, w.state = func(publish.Refusal) publish.Confirmer { return stopper{stop} }, unknown
	w.Configure(w.options)
	w.turn(ctx, string(notify.Change))
	w.Close()
	return nextWatching(t, s, m)
}

func compareTrials(t *testing.T, s *site, w *watching, m *machine, is *model) {
	t.Helper()
	isPublished(t, s, is.out)
	shown := w.shown.Trial
	switch {
	case (shown != nil) != (is.trial != nil), (w.shown.Pinned != nil) != (is.pin != nil), (w.shown.Paused != nil) != is.paused:
		t.Errorf("it shows %+v, %+v, %+v", shown, w.shown.Pinned, w.shown.Paused)
	case shown != nil && shown.Until.Sub(m.day.Add(is.trial.left)).Abs() > time.Second:
		t.Errorf("it is undone at %s, want %s", shown.Until, m.day.Add(is.trial.left))
	}
	waits := is.source != "" && is.source != is.out
	if (w.shown.Waits != nil) != waits && is.source != "" {
		t.Errorf("waits: %+v, want %t", w.shown.Waits, waits)
	}
}
