package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watched is an envoy that records its calls.
type watched struct {
	*envoy
	asked  []string
	before func(s Step) error
}

func (e *watched) Before(_ context.Context, s Step) error {
	e.asked = append(e.asked, "before "+s.Name)
	if e.before != nil {
		return e.before(s)
	}
	return nil
}

func (e *watched) After(ctx context.Context, s Step) (bool, error) {
	e.asked = append(e.asked, "after "+s.Name)
	return e.envoy.After(ctx, s)
}

// TestUndo refuses the fourth of five steps. The four steps go back, each with a confirmation, and the Result
// lists them.
func TestUndo(t *testing.T) {
	out := t.TempDir()
	if err := done(state1())(out); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, out, &probe{root: out, quick: true})
	e := &watched{envoy: scenario{plan: state2(), refuse: "lds 2"}.envoy(out)}
	p := state2()
	p.Confirm = e
	res, err := d.Publish(context.Background(), p)
	refused, ok := err.(*RefusedError) // not wrapped: there is no other error
	if !ok || len(refused.Findings()) != 1 || !strings.Contains(err.Error(), "step listeners: Envoy refused it: "+noReason) {
		t.Errorf("error %v", err)
	}
	asked := []string{
		"before new", "after new", "before secrets", "after secrets", "before clusters", "after clusters", "before listeners", "after listeners",
		"before listeners", "after listeners", "before clusters", "after clusters", "before secrets", "after secrets",
	}
	if !slices.Equal(e.asked, asked) {
		t.Errorf("asked %q, want %q", e.asked, asked)
	}
	moves := func(steps []StepResult) string {
		var list []string
		for _, s := range steps {
			list = append(list, fmt.Sprintf("%s%v%v", s.Name, s.Written, s.Removed))
		}
		return strings.Join(list, " ")
	}
	if got, want := moves(res.Steps), "new[eds/api/eds.json][] secrets[sds/cert/sds.json][] clusters[cds/cds.json][] listeners[lds/lds.json][]"; got != want {
		t.Errorf("moved %s, want %s", got, want)
	}
	if got, want := moves(res.Undone), "listeners[lds/lds.json][] clusters[cds/cds.json][] secrets[sds/cert/sds.json][]"; got != want {
		t.Errorf("put back %s, want %s", got, want)
	}
	m, err := ReadManifest(out)
	if want := []Retired{{Cluster: "api"}, {File: "eds/api/eds.json"}}; err != nil || !slices.Equal(m.Retired, want) {
		t.Errorf("going %v, %v, want %v", m.Retired, err, want)
	}
	r, err := ReadRefused(out)
	if h := r.Holds("s2", "d2"); err != nil || h == nil || h.Step != "listeners" || !h.Time.Equal(day2) {
		t.Errorf("held %+v, %v", r, err)
	}
	if err := d.Release(); err != nil {
		t.Error(err)
	}
	if r, err := ReadRefused(out); err != nil || r.Holds("s2", "d2") != nil || r.Last == nil {
		t.Errorf("released, and %+v, %v", r, err)
	}
}

// TestUndoUnasked checks that a rollback completes without an answer from Envoy, and after the end of the
// context.
func TestUndoUnasked(t *testing.T) {
	out := t.TempDir()
	if err := done(state1())(out); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := mustOpen(t, out, &probe{root: out, quick: true})
	p := state2()
	e := &watched{envoy: scenario{plan: p, refuse: "main 2"}.envoy(out), before: func(Step) error { return ctx.Err() }}
	p.Confirm = cancelling{e, "routes", cancel}
	_, err := d.Publish(ctx, p)
	if !onlyRefused(err) {
		t.Errorf("error %v", err)
	}
	checkPublished(t, out, files{}.withPlans([]Plan{state1(), {Steps: state2().Steps[:1]}, kept(state2())}))
}

// TestCancelledBefore ends the context while Publish asks Envoys before a step. This does not count as a
// refusal of the step.
func TestCancelledBefore(t *testing.T) {
	out := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	p := state1()
	p.Confirm = &watched{envoy: scenario{plan: p}.envoy(out), before: func(Step) error { cancel(); return errors.New("no answer") }}
	_, err := mustOpen(t, out, &probe{root: out, quick: true}).Publish(ctx, p)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped before step new, the next run continues from there") || strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
}

// cancelling is a Confirmer that ends the context after a step.
type cancelling struct {
	Confirmer
	step   string
	cancel context.CancelFunc
}

func (c cancelling) After(ctx context.Context, s Step) (bool, error) {
	if s.Name == c.step {
		c.cancel()
	}
	return c.Confirmer.After(ctx, s)
}

// silent is a Confirmer whose Envoy does not answer.
type silent struct{}

func (silent) Before(context.Context, Step) error        { return nil }
func (silent) After(context.Context, Step) (bool, error) { return false, nil }

// TestAnswered checks that Publish waits the gap only after a step that no Envoy has answered.
func TestAnswered(t *testing.T) {
	for _, tt := range []struct {
		name    string
		confirm Confirmer
		want    time.Duration
	}{
		{"answered", &envoy{}, 0},
		{"silent", silent{}, 4 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := t.TempDir()
			if err := done(state1())(out); err != nil {
				t.Fatal(err)
			}
			if e, ok := tt.confirm.(*envoy); ok {
				e.out = out
			}
			synctest.Test(t, func(t *testing.T) {
				d := mustOpen(t, out, &probe{root: out, quick: true})
				p := state2()
				p.Gap, p.Confirm = time.Second, tt.confirm
				start := time.Now()
				mustPublish(t, d, p)
				if took := time.Since(start); took != tt.want {
					t.Errorf("waited %v, want %v", took, tt.want)
				}
				d.Close()
			})
		})
	}
}

// TestUnconfirmed checks a Confirmer that fails before a step. Publish stops there, and rolls nothing back. The
// next Publish asks for the confirmation of all published files.
func TestUnconfirmed(t *testing.T) {
	errHidden := errors.New("the stats are hidden")
	out := t.TempDir()
	if err := done(state1())(out); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, out, &probe{root: out, quick: true})
	p := state2()
	p.Confirm = &watched{envoy: scenario{plan: p}.envoy(out), before: func(s Step) error {
		if s.Name == "listeners" {
			return errHidden
		}
		return nil
	}}
	res, err := d.Publish(context.Background(), p)
	if !errors.Is(err, errHidden) || !strings.Contains(err.Error(), ": stopped before step listeners, the next run continues from there: ") || len(res.Steps) != 3 || len(res.Undone) != 0 {
		t.Errorf("error %v, %+v", err, res)
	}
	checkPublished(t, out, files{}.withPlans([]Plan{state1(), {Steps: state2().Steps[:3]}}))
	in, err := ReadIntent(out)
	if err != nil || in.From != "s1" || in.To != "s2" || in.Direction != Forward || in.Attempt != 1 {
		t.Errorf("intent %+v, %v", in, err)
	}
	e := scenario{plan: p}.envoy(out)
	p.Confirm = e
	if res := mustPublish(t, d, p); len(res.Steps) != 5 || len(e.took) != 5 {
		t.Errorf("moved %+v, and %v was confirmed", res, e.took)
	}
}

// TestSecretStaysSecret changes the mode of a published secret by hand. The next change restores the mode, is
// refused, and goes back. The secret then has the mode of secrets: not everybody can read it.
func TestSecretStaysSecret(t *testing.T) {
	out := t.TempDir()
	const name = "sds/cert/sds.json"
	secret := step("secrets", withKey(text(name, "cert 1")))
	publishOnce(t, out, snapshot("s1", secret, step("listeners", text("lds/lds.json", "lds 1"))))
	if err := os.Chmod(filepath.Join(out, name), 0o600); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, out, &probe{root: out, quick: true})
	p := snapshot("s2", secret, step("listeners", text("lds/lds.json", "lds 2")))
	p.Confirm = scenario{plan: p, refuse: "lds 2"}.envoy(out)
	if _, err := d.Publish(t.Context(), p); !onlyRefused(err) {
		t.Fatal(err)
	}
	checkModes(t, out, map[string]fs.FileMode{name: 0o640, filepath.Dir(name): 0o750})
}
