package e2e

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
)

// asked returns the answer of the watch's control socket.
func (s *fixture) asked(t *testing.T) control.Watch {
	t.Helper()
	w, err := control.Ask(t.Context(), s.out)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRetryHeld has Envoy refuse a listener on a port that another process holds. The watch retries when the
// control socket asks for it, and returns Envoy's reason. After the port is free, a retry publishes the listener.
func TestRetryHeld(t *testing.T) {
	t.Parallel()
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	edge := envoytest.FreePort(t)
	busy, free := takePort(t)
	s := startConfirmed(t, map[string]string{"edge.yaml": documents(staticCluster("blue", blue.Port()), listener("edge", edge, "route_config: {"+hosts("blue")+"}"))},
		"--rescan", "1h") // no rescan after the requested pass
	before := s.bytesOut(t)
	first := s.asked(t)
	if first.PID != s.watch.cmd.Process.Pid || first.Source != s.src || first.Since.IsZero() || first.Snapshot == "" || first.Refused != nil || first.Failed != "" || first.Running != nil {
		t.Errorf("%+v", first)
	}
	retry := func(wantExit int) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, exit := xdspub(t, "render", "--retry-held", "--out", s.out, s.src)
		if exit != wantExit || !strings.Contains(stderr, fmt.Sprintf("asking process %d, which watches %s, to retry", first.PID, s.src)) {
			t.Errorf("exit status %d\n%s%s", exit, stdout, stderr)
		}
		return stdout, stderr
	}

	s.write(t, "green.yaml", documents(staticCluster("green", green.Port()), listener("busy", busy, "route_config: {"+hosts("green")+"}")))
	s.watch.WaitLog(t, "event=rolled-back ")
	refusedIs := func(reason string) {
		t.Helper()
		var w control.Watch
		envoytest.Eventually(t, patience, "the pass has ended", func() (bool, string) {
			w = s.asked(t)
			return w.Running == nil, fmt.Sprint(w.Running)
		})
		if r := w.Refused; r == nil || r.Snapshot == "" || r.Snapshot == first.Snapshot || len(r.Findings) == 0 || r.Since.Before(first.Since) || !strings.Contains(r.Message, "Envoy rejected it in step") {
			t.Errorf("%+v", r)
		}
		if w.Snapshot != first.Snapshot || w.Last == nil || w.Last.Reason != reason || w.Last.Outcome != control.Refused || w.Last.Ended.Before(w.Last.Began) {
			t.Errorf("%+v, the last pass %+v", w, w.Last)
		}
		s.sameOut(t, before)
	}
	refusedIs("change")

	stdout, stderr := retry(1)
	for _, want := range []string{"green.yaml:", `"busy"`, "Address already in use", "[refused-by-envoy]", `Envoy rejected it in step "listeners": the snapshot before is published again`} {
		if !strings.Contains(stderr, want) {
			t.Errorf("the answer lacks %q:\n%s", want, stderr)
		}
	}
	if stdout != "" {
		t.Error(stdout)
	}
	s.watch.WaitLog(t, "event=retry-requested")
	s.watch.WaitLog(t, "event=rolled-back ")
	refusedIs("retry-held")

	free()
	if stdout, _ := retry(0); !strings.Contains(stdout, " written, ") || !strings.Contains(stdout, "confirmed") {
		t.Error(stdout)
	}
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the listener that was refused", "200 green", func() string { return ask(t, request{port: busy}).text })
	if refused, err := publish.ReadRefused(s.out); err != nil || len(refused.Held) > 0 {
		t.Errorf("still held: %+v, %v", refused, err)
	}
	w := s.asked(t)
	if w.Refused != nil || w.Snapshot == first.Snapshot || w.Last.Reason != "retry-held" || w.Last.Outcome != control.Published {
		t.Errorf("%+v, the last pass %+v", w, w.Last)
	}
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	if _, err := control.Ask(t.Context(), s.out); !errors.Is(err, control.ErrNoWatch) {
		t.Error(err)
	}
}

// TestWatchIsAsked asks the control socket of a watch within a change, with an invalid tree, before a trim, and of
// a watch that can't run.
func TestWatchIsAsked(t *testing.T) {
	t.Parallel()
	tree := func(port int) string {
		return documents(edsCluster("web"), endpoints("web", port), staticCluster("api", port))
	}
	s := newFixture(t, map[string]string{"tree.yaml": tree(1), "old.yaml": staticCluster("old", 1)}, "--step-gap", "0s", "--rescan", "100ms")
	s.startWatch(t)
	s.remove(t, "old.yaml")
	s.watch.WaitLog(t, "event=published ")
	until := func(what string, is func(control.Watch) bool) (w control.Watch) {
		t.Helper()
		envoytest.Eventually(t, patience, what, func() (bool, string) {
			w = s.asked(t)
			return is(w), fmt.Sprintf("%+v", w)
		})
		return w
	}
	w := until("the trim is known", func(w control.Watch) bool { return !w.NextTrim.IsZero() })
	if in := time.Until(w.NextTrim); in <= 0 || in > 10*time.Minute {
		t.Errorf("the next trim is in %v", in)
	}

	s.write(t, "tree.yaml", strings.ReplaceAll(tree(1), "name:", "nam:"))
	w = until("the tree is refused", func(w control.Watch) bool { return w.Refused != nil })
	if r := w.Refused; r.Snapshot != "" || !strings.Contains(r.Message, "nothing was published") || r.Findings[0].Code != "unknown-field" || !strings.HasSuffix(r.Findings[0].File, "tree.yaml") {
		t.Errorf("%+v", r)
	}
	since := w.Refused.Since
	s.write(t, "tree.yaml", "nothing")
	w = until("other findings", func(w control.Watch) bool { return w.Refused != nil && w.Refused.Findings[0].Code != "unknown-field" })
	if !w.Refused.Since.Equal(since) {
		t.Errorf("refused since %v, was %v", w.Refused.Since, since)
	}
	s.write(t, "tree.yaml", tree(1))
	until("the tree is taken again", func(w control.Watch) bool { return w.Refused == nil && w.Last.Outcome == control.Published })

	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.write(t, "tree.yaml", tree(2))
	s.beginWatch(t, "--step-gap", "1h")
	s.watch.WaitLog(t, "event=step-published step=clusters")
	w = s.asked(t)
	if w.Running == nil || w.Running.Reason != "start" || w.Last != nil || w.Snapshot == "" {
		t.Errorf("within a change: %+v", w)
	}
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)

	s.startWatch(t)
	s.write(t, "xdspub.yaml", "what: is this\n")
	w = until("it can't run", func(w control.Watch) bool { return w.Failed != "" })
	if !strings.Contains(w.Failed, "xdspub.yaml") || w.Last.Outcome != control.Failed {
		t.Errorf("%+v, the last pass %+v", w, w.Last)
	}
}
