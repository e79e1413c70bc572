package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/render/history"
	"xdspub/watch/control"
)

// edge is a listener.
const edge = "---\n{\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener, name: edge, address: {pipe: {path: edge.sock}}, " +
	"filter_chains: [{filters: [{name: echo, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]}\n"

// newGuarded returns a site with guards, and a watching that has published web without a listener, and then with edge.
func newGuarded(t *testing.T) (*site, *watching) {
	t.Helper()
	s := newSite(t, web)
	s.o.History, s.o.Guards, s.o.MaxRemoval = history.Options{Keep: 50}, true, 50
	w := watchingOf(t, s)
	for _, text := range []string{web, web + edge} {
		if r := w.turnTo(t, s, text); r.Outcome != control.Published {
			t.Fatalf("%+v", r)
		}
	}
	return s, w
}

// hasEdge reports whether the listener is published.
func hasEdge(t *testing.T, s *site) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.o.Out, "lds", "lds.json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(data), `"edge"`)
}

// isGuarded reports whether a Result is the refusal of a guard.
func isGuarded(r control.Result) bool {
	return r.Outcome == control.Refused && len(r.Findings) == 1 && r.Findings[0].Code == "all-listeners-removed"
}

// TestGuardAgain: a guard refuses a removal in each process, and each time that the listener has come back.
func TestGuardAgain(t *testing.T) {
	s, w := newGuarded(t)
	for _, name := range []string{"at first", "after a restart", "after it came back"} {
		if r := w.turnTo(t, s, web); !isGuarded(r) || !hasEdge(t, s) {
			t.Errorf("%s: %+v", name, r)
		}
		if name == "at first" {
			w.Close()
			w = watchingOf(t, s)
			continue
		}
		w.options.Guards = false
		w.turnTo(t, s, web)
		if hasEdge(t, s) {
			t.Errorf("%s: --allow-removal does not remove the listener", name)
		}
		w.options.Guards = true
		if r := w.turnTo(t, s, web); r.Outcome != control.Published {
			t.Errorf("%s: nothing is left to remove: %+v", name, r)
		}
		if r := w.turnTo(t, s, web+edge); r.Outcome != control.Published {
			t.Errorf("%s: the listener comes back: %+v", name, r)
		}
	}
}

// TestGuardedRollback: a guard judges a rollback, too, before the pin. The guard lets a pinned snapshot through: a
// killed rollback continues.
func TestGuardedRollback(t *testing.T) {
	s, w := newGuarded(t)
	if r := execute(t, w, back); !isGuarded(r) || !hasEdge(t, s) || w.decisions.Pinned != nil {
		t.Errorf("%+v", r)
	}
	if r := w.turnTo(t, s, web+edge); r.Outcome != control.Published {
		t.Errorf("after the refused rollback: %+v", r)
	}
	asked := back
	asked.AllowRemoval = true
	pin, r, err := w.propose(t.Context(), asked, nil)
	if err = errors.Join(err, w.keepPin(pin)); err != nil || r.Outcome != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	w.Close() // as if it were killed
	w = watchingOf(t, s)
	if r := w.turnTo(t, s, web+edge); r.Outcome != control.Waiting || hasEdge(t, s) {
		t.Errorf("the rollback does not continue: %+v", r)
	}
	execute(t, w, control.Resume{By: "bob@host"})
	if !hasEdge(t, s) {
		t.Error("the source tree is not published after a resume")
	}
	if r := execute(t, w, asked); r.Outcome != control.Published || hasEdge(t, s) {
		t.Errorf("%+v", r)
	}
}

// TestGuardedRollbackAlone: a rollback without a watch is guarded as one by a watch is.
func TestGuardedRollbackAlone(t *testing.T) {
	s, w := newGuarded(t)
	w.Close()
	if r, err := Rollback(t.Context(), s.o, back); err != nil || !isGuarded(r) || !hasEdge(t, s) {
		t.Errorf("%+v, %v", r, err)
	}
	asked := back
	asked.AllowRemoval = true
	if r, err := Rollback(t.Context(), s.o, asked); err != nil || r.Outcome != control.Published || hasEdge(t, s) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestGuardedParts: while the source tree is refused, an emptied cluster waits, and all other endpoints go on.
func TestGuardedParts(t *testing.T) {
	const clusters = 30 // more than the rounds of PublishPart
	s := newSite(t, "")
	s.o.Guards, s.o.MaxRemoval, s.o.WhileRefused = true, 50, []string{"endpoints"}
	tree := func(content int, emptied bool) string {
		text := ""
		for n := range clusters {
			text += "---\n" + unit{kind: "cluster", n: n}.text()
			is := unit{kind: "endpoints", n: n, content: content}
			if emptied && n > 0 {
				is.fault = noEndpoints
			}
			text += "---\n" + is.text()
		}
		return text
	}
	w := watchingOf(t, s)
	w.turnTo(t, s, tree(1, false))
	r := w.turnTo(t, s, tree(2, true))
	if r.Outcome != control.Refused || r.Part == nil || r.Part.Waits != "" || !strings.Contains(fmt.Sprint(r.Findings), "29 clusters") {
		t.Fatalf("%+v", r)
	}
	for n, want := range []string{`"port_value":3`, `"port_value":2`} {
		data, err := os.ReadFile(filepath.Join(s.o.Out, "eds", fmt.Sprint("c", n), "eds.json"))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(data), " ", ""), want) {
			t.Errorf("c%d: %v, want %s in\n%s", n, err, want, data)
		}
	}
}
