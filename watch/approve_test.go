package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/operator"
)

// manyClusters returns a source tree with the clusters from c<first> to c12.
func manyClusters(first int) string {
	text := ""
	for n := first; n <= 12; n++ {
		text += fmt.Sprintf("---\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: c%d\n", n)
	}
	return text
}

// newRefused returns a site whose guards have refused the source tree without a listener, and the id of the change.
func newRefused(t *testing.T) (s *site, w *watching, change string) {
	t.Helper()
	s, w = newGuarded(t)
	if r := w.turnTo(t, s, web); !isGuarded(r) || w.shown.Guarded == nil {
		t.Fatalf("%+v, it shows %+v", r, w.shown.Guarded)
	}
	return s, w, w.shown.Guarded.Change
}

func approval(change string) control.Approve {
	return control.Approve{By: "alice@host", Reason: "a test", Change: change}
}

// decisionsOf returns the decisions on disk.
func decisionsOf(t *testing.T, s *site) operator.Decisions {
	t.Helper()
	d, err := operator.Read(s.o.Out)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestApprove: an approval lets a refused change through, once.
func TestApprove(t *testing.T) {
	s, w, change := newRefused(t)
	if help := w.shown.Refused.Findings[0].Help; !strings.Contains(help, fmt.Sprintf("xdspub approve --out %s %s lets", w.options.Out, change)) {
		t.Error(help)
	}
	for name, c := range map[string]struct {
		asked control.Approve
		want  string
	}{
		"unknown":   {approval("0123456789"), fmt.Sprintf(`no change "0123456789" waits for an approval; the change that waits is %s: removes all listeners (1): "edge"`, change)},
		"short":     {approval(change[:3]), "is too short"},
		"no reason": {control.Approve{By: "alice@host", Change: change}, "the reason is empty"},
	} {
		_, err := w.execute(t.Context(), c.asked)
		if conflict, ok := errors.AsType[*control.ConflictError](err); !ok || !strings.Contains(conflict.Reason, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 {
		r := execute(t, w, approval(change[:6]))
		if r.Outcome != control.Published || !strings.HasPrefix(r.Message, "change "+change+" is let through: snapshot ") || hasEdge(t, s) {
			t.Errorf("%+v", r)
		}
		if d := decisionsOf(t, s); d.Approved != nil || d.Guarded != nil || w.shown.Approved != nil || w.shown.Guarded != nil {
			t.Errorf("after the publish: %+v, it shows %+v, %+v", d, w.shown.Approved, w.shown.Guarded)
		}
		if i := read(t, s).Items()[0]; i.Command != "approve" || i.By != "alice@host" || i.Reason != "a test" {
			t.Errorf("the history has %+v", i)
		}
		if _, err := w.execute(t.Context(), approval(change)); err == nil || !strings.Contains(err.Error(), "no change waits for an approval") {
			t.Errorf("a second approval: %v", err)
		}
		w.turnTo(t, s, web+edge)
		if r := w.turnTo(t, s, web); !isGuarded(r) || w.shown.Guarded == nil || w.shown.Guarded.Change != change {
			t.Fatalf("once more: %+v", r)
		}
	}
}

// TestApproveAlone: an approval without a watch waits for the next process. A second operator learns of the first.
func TestApproveAlone(t *testing.T) {
	s, w, change := newRefused(t)
	w.Close()
	if r, err := Approve(s.o.Out, approval(change)); err != nil || r.Outcome != control.Approved || r.Approved == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := Approve(s.o.Out, approval(change)); err == nil || !strings.Contains(err.Error(), "is approved already, by alice@host") {
		t.Error(err)
	}
	w = watchingOf(t, s)
	if r := w.turnTo(t, s, wrong); r.Outcome != control.Refused || decisionsOf(t, s).Approved == nil {
		t.Errorf("an invalid tree ends the approval: %+v", r)
	}
	if r := w.turnTo(t, s, web); r.Outcome != control.Published || hasEdge(t, s) || decisionsOf(t, s).Approved != nil {
		t.Errorf("%+v, %+v", r, decisionsOf(t, s))
	}
}

// TestApproveByRender: a render that was refused leaves the change for an approval.
func TestApproveByRender(t *testing.T) {
	s, w := newGuarded(t)
	w.Close()
	s.write(web)
	c := New(s.o)
	checked, err := Tree([]Options{s.o}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan, err := c.Plan(t.Context(), checked); plan != nil || err != nil || c.KeepGuarded() != nil {
		t.Fatal(plan, err)
	}
	if _, err := Approve(s.o.Out, approval(decisionsOf(t, s).Guarded.Change)); err != nil {
		t.Fatal(err)
	}
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if o := s.pass(c); o.Verdict != Published || hasEdge(t, s) {
		t.Errorf("%+v", o)
	}
}

// TestApprovalVoid: an approval of a change that is no longer the wanted one lets nothing through.
func TestApprovalVoid(t *testing.T) {
	for name, c := range map[string]struct {
		next string
		want control.Outcome
		says string
	}{
		"another removal": {manyClusters(12), control.Refused, "the wanted change is another one now: "},
		"no removal":      {manyClusters(2), control.Published, "the source tree needs none any more"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, manyClusters(1))
			s.o.Guards, s.o.MaxRemoval = true, 50
			w := watchingOf(t, s)
			w.turnTo(t, s, manyClusters(1))
			if r := w.turnTo(t, s, manyClusters(11)); r.Outcome != control.Refused {
				t.Fatalf("%+v", r)
			}
			before := w.shown.Guarded.Change
			s.write(c.next)
			w.source.unread.All = true
			r := execute(t, w, approval(before))
			if r.Outcome != c.want || !strings.Contains(r.Message, fmt.Sprintf("the approval of change %s is void, since %s", before, c.says)) {
				t.Errorf("%+v", r)
			}
			if d := decisionsOf(t, s); d.Approved != nil || (d.Guarded != nil) != (c.want == control.Refused) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestApproveWhilePaused: an approved change waits for the end of a pause.
func TestApproveWhilePaused(t *testing.T) {
	s, w, change := newRefused(t)
	execute(t, w, pause)
	if r := execute(t, w, approval(change)); r.Outcome != control.Waiting || !strings.Contains(r.Message, "is approved, and waits: ") || !hasEdge(t, s) {
		t.Errorf("%+v", r)
	}
	if w.shown.Approved == nil || w.shown.Guarded != nil {
		t.Errorf("it shows %+v, %+v", w.shown.Approved, w.shown.Guarded)
	}
	if r := execute(t, w, control.Resume{By: "bob@host"}); r.Outcome != control.Published || hasEdge(t, s) || w.shown.Approved != nil {
		t.Errorf("%+v", r)
	}
}

// TestApproveKilled: a process that publishes an approved change is killed half-way. The next process publishes the
// rest, although the rest is another change. Meanwhile, nobody can withdraw the approval.
func TestApproveKilled(t *testing.T) {
	s := newSite(t, web)
	s.o.Guards, s.o.MaxRemoval, s.o.History = true, 50, history.Options{Keep: 50}
	w := watchingOf(t, s)
	w.turnTo(t, s, manyClusters(1)+edge)
	next := manyClusters(12) + "---\n" + strings.ReplaceAll(web, "web", "fresh")
	if r := w.turnTo(t, s, next); r.Outcome != control.Refused || len(r.Findings) != 2 {
		t.Fatalf("%+v", r)
	}
	change := w.shown.Guarded.Change
	ctx, stop := context.WithCancel(t.Context())
	w.options.Confirm, w.state = func(publish.Refusal) publish.Confirmer { return stopAfter{"listeners", stop} }, unknown
	w.Configure(w.options)
	w.execute(ctx, approval(change))
	if in, err := publish.ReadIntent(s.o.Out); err != nil || in == nil || hasEdge(t, s) || decisionsOf(t, s).Approved == nil {
		t.Fatalf("the change was not interrupted: %+v, %v, %+v", in, err, decisionsOf(t, s))
	}
	w.Close()
	if _, err := Approve(s.o.Out, withdrawal(change)); err == nil || !strings.Contains(err.Error(), "is published in part, and can't be withdrawn: ") {
		t.Error(err)
	}
	w = watchingOf(t, s)
	if r := w.turnTo(t, s, next); r.Outcome != control.Published || hasEdge(t, s) || decisionsOf(t, s).Approved != nil {
		t.Errorf("%+v, %+v", r, decisionsOf(t, s))
	}
	if i := read(t, s).Items()[0]; i.Command != "approve" || i.By != "alice@host" {
		t.Errorf("the history has %+v", i)
	}
}

// TestApproveKilledLate: a process is killed after the publish of the whole change. The next process ends the approval,
// and the history names the operator.
func TestApproveKilledLate(t *testing.T) {
	s, w, change := newRefused(t)
	w.decisions.Approve(change, control.Decision{By: "alice@host", Reason: "a test", Since: now()})
	if err := w.decisions.Write(w.dir); err != nil {
		t.Fatal(err)
	}
	if o := s.pass(w.Controller); o.Verdict != Published || o.Approval == nil || decisionsOf(t, s).Approved == nil {
		t.Fatalf("%+v", o)
	}
	w.Close() // before Settle
	w = watchingOf(t, s)
	if r := w.turnTo(t, s, web); r.Outcome != control.Published || w.guarding.void != "" || decisionsOf(t, s).Approved != nil {
		t.Errorf("%+v, %q", r, w.guarding.void)
	}
	if i := read(t, s).Items()[0]; i.Command != "approve" || i.By != "alice@host" {
		t.Errorf("the history has %+v", i)
	}
}

// stopAfter is a Confirmer that interrupts a change after a step.
type stopAfter struct {
	step string
	stop func()
}

func (s stopAfter) Before(context.Context, publish.Step) error { return nil }

func (s stopAfter) After(_ context.Context, step publish.Step) (bool, error) {
	if step.Name != s.step {
		return true, nil
	}
	s.stop()
	return false, context.Canceled
}

// TestApprovalGone: an approval that waits is void when the source tree loses its change, and the log says so. The same
// change waits for an approval again.
func TestApprovalGone(t *testing.T) {
	for name, hold := range map[string]func(w *watching){
		"pause":  func(w *watching) { execute(t, w, pause) },
		"freeze": func(w *watching) { w.options.Freeze = weekend(t); w.setClock(saturday) },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s, w, change := newRefused(t)
			w.log = event.New(slog.NewTextHandler(&log, nil))
			hold(w)
			if r := execute(t, w, approval(change)); r.Outcome != control.Waiting || w.shown.Approved == nil {
				t.Fatalf("%+v", r)
			}
			if w.turnTo(t, s, wrong); w.shown.Approved == nil {
				t.Error("an invalid tree ends the approval")
			}
			r := w.turnTo(t, s, web+edge+"---\n"+third)
			if r.Outcome != control.Waiting || w.shown.Approved != nil || w.shown.Guarded != nil || decisionsOf(t, s).Approved != nil {
				t.Errorf("the tree is mended: %+v, it shows %+v, %+v", r, w.shown.Approved, w.shown.Guarded)
			}
			if !strings.Contains(log.String(), "event=approval-void by=alice@host") {
				t.Error(log.String())
			}
			if r := w.turnTo(t, s, web); !isGuarded(r) || w.shown.Guarded == nil || w.shown.Guarded.Change != change || !hasEdge(t, s) {
				t.Errorf("the same change: %+v, it shows %+v", r, w.shown.Guarded)
			}
		})
	}
}

// TestGuardedGone: a change that waits for an approval waits no longer when the source tree is mended during a pause.
func TestGuardedGone(t *testing.T) {
	s, w, _ := newRefused(t)
	execute(t, w, pause)
	if w.turnTo(t, s, web+edge); w.shown.Guarded != nil || decisionsOf(t, s).Guarded != nil {
		t.Errorf("it shows %+v", w.shown.Guarded)
	}
}

func withdrawal(change string) control.Approve {
	return control.Approve{By: "bob@host", Reason: "too early", Change: change, Withdraw: true}
}

// TestWithdraw: a withdrawn approval lets nothing through, and the change waits for an approval again: with a watch,
// and without.
func TestWithdraw(t *testing.T) {
	s, w, change := newRefused(t)
	execute(t, w, pause)
	for id, want := range map[string]string{change: "no approval waits for its change", "012": "is too short"} {
		if _, err := w.execute(t.Context(), withdrawal(id)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", id, err, want)
		}
	}
	execute(t, w, approval(change))
	if _, err := w.execute(t.Context(), withdrawal("0123456789")); err == nil || !strings.Contains(err.Error(), "is not approved; the approved change is "+change) {
		t.Error(err)
	}
	r := execute(t, w, withdrawal(change[:6]))
	if r.Outcome != control.Withdrawn || !strings.Contains(r.Message, "the approval of change "+change+" by alice@host since ") {
		t.Errorf("%+v", r)
	}
	if w.shown.Approved != nil || w.shown.Guarded == nil || w.shown.Refused == nil {
		t.Errorf("it shows %+v, %+v, %+v", w.shown.Approved, w.shown.Guarded, w.shown.Refused)
	}
	if r := execute(t, w, control.Resume{By: "bob@host"}); r.Outcome != control.Refused || !hasEdge(t, s) {
		t.Errorf("%+v", r)
	}
	w.Close()

	if _, err := Approve(s.o.Out, approval(change)); err != nil {
		t.Fatal(err)
	}
	if r, err := Approve(s.o.Out, withdrawal(change)); err != nil || r.Outcome != control.Withdrawn || decisionsOf(t, s).Approved != nil {
		t.Errorf("%+v, %v", r, err)
	}
	w = watchingOf(t, s)
	if r := w.turnTo(t, s, web); !isGuarded(r) || !hasEdge(t, s) {
		t.Errorf("%+v", r)
	}
}
