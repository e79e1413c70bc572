package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/source/load"
	"xdspub/store/waves"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
)

// verdict is a Check whose verdict a test sets.
type verdict struct {
	failed  atomic.Bool
	unknown atomic.Bool
	runs    atomic.Int64
}

func (v *verdict) Run(_ context.Context, about []byte) (failed bool, err error) {
	v.runs.Add(1)
	var is About
	if json.Unmarshal(about, &is) != nil || is.Snapshot == is.Base || is.Wave < 1 {
		return true, fmt.Errorf("invalid input %s", about)
	}
	switch {
	case v.failed.Load():
		return true, errors.New("too many errors")
	case v.unknown.Load():
		return false, errors.New("no answer")
	}
	return false, nil
}

func (v *verdict) String() string { return "errors" }

// fleet is a writer and its machines.
type fleet struct {
	*harness
	writer *Writer
	said   *events
	end    func()
}

// fleet starts a writer with the waves tier=canary and all machines.
func (h *harness) fleet(checks ...Check) *fleet {
	h.Helper()
	f := &fleet{harness: h, said: new(events)}
	f.writer = NewWriter(WriterOptions{Options: h.options, By: "me@here", Checks: checks, Log: event.New(discard{}, f.said.add)})
	p, err := waves.Plan{{Label: "tier=canary", Quorum: 100, Bake: 100 * time.Millisecond}}.Checked()
	if err != nil {
		h.Fatal(err)
	}
	f.writer.Configure(p)
	ctx, cancel := context.WithCancel(context.Background())
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		_ = f.writer.RunWhile(ctx, func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return nil
		})
		close(ended)
	}()
	<-begun
	f.end = func() {
		cancel()
		<-ended
	}
	h.Cleanup(f.end)
	return f
}

// judged is a machine that accepts what it gets, unless refuses is the number of resources.
type judged struct {
	*Follower
	refuses atomic.Int64
	holds   atomic.Bool // judges nothing
}

func (f *fleet) machine(name, labels string) *judged {
	f.Helper()
	follower, _ := f.follower(FollowerOptions{Machine: name, Labels: labels, Acknowledge: true})
	m := &judged{Follower: follower}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for last := uint64(0); ; {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			c, err := m.Read(f.Context())
			if err != nil || c.N == last || m.holds.Load() {
				continue
			}
			last = c.N
			j := load.Judgement{N: c.N, Accepted: true}
			if int64(len(c.Files)) == m.refuses.Load() {
				j = load.Judgement{N: c.N, Findings: diag.List{{Severity: diag.Error, Message: "no such cluster"}}}
			}
			m.Judged(j)
		}
	}()
	f.Cleanup(func() {
		close(done)
		<-ended
	})
	return m
}

// rollout returns the rollout that the writer shows; nil for none.
func (f *fleet) rollout(target string) *control.Rollout { return f.writer.State(target).Rollout }

// shows waits until the writer shows a state, and until everybody can read the state in the store.
func (f *fleet) shows(target string, state control.RolloutState, message string) (t Target) {
	f.Helper()
	envoytest.Eventually(f, patience, fmt.Sprint("the state ", state), func() (bool, string) {
		own := f.rollout(target)
		if own == nil || own.State != state {
			return false, fmt.Sprint(own)
		}
		r, err := Ask(f.Context(), f.options, target)
		if err != nil {
			return false, err.Error()
		}
		t = r.Targets[0]
		return t.Rollout != nil && t.Rollout.State == state && strings.Contains(t.Rollout.Message, message) && !r.InSync, fmt.Sprint(t.Rollout, own)
	})
	return t
}

// done waits until no rollout is left.
func (f *fleet) done() {
	f.Helper()
	envoytest.Eventually(f, patience, "the end of the rollout", func() (bool, string) {
		if v := f.rollout(""); v != nil {
			return false, v.String()
		}
		r, err := Ask(f.Context(), f.options, "")
		return err == nil && r.Targets[0].Rollout == nil, fmt.Sprint(err)
	})
}

// TestRollout: a wave gets a change after the wave before; a machine that refuses the change, a check that fails, and
// an operator take the change back; a pause and a check that can't tell keep the next wave from opening.
func TestRollout(t *testing.T) {
	t.Parallel()
	h := start(t)
	check := new(verdict)
	f := h.fleet(check)
	f.writer.Published("", many(1))
	canary, other := f.machine("m1", "tier=canary"), f.machine("m2", "")
	until(t, canary.Follower, 1)
	until(t, other.Follower, 1)
	h.untilMachines(map[string]Standing{"m1": InSync, "m2": InSync})

	canary.holds.Store(true)
	f.writer.Published("", many(2))
	until(t, canary.Follower, 2)
	is := f.shows("", control.Acknowledging, "its machines acknowledge")
	if is.Rollout.Wave != 1 || is.Rollout.Waves != 2 || is.Rollout.Name != "tier=canary" || is.Wave != (Tally{Machines: 1}) {
		t.Errorf("%+v, %+v", is.Rollout, is.Wave)
	}
	until(t, other.Follower, 1)
	check.unknown.Store(true)
	canary.holds.Store(false)
	f.shows("", control.Checking, "the check errors can't tell: no answer")
	until(t, other.Follower, 1)
	check.unknown.Store(false)
	f.said.wait(t, func(e event.Event) bool { _, done := e.(event.RolloutDone); return done })
	until(t, other.Follower, 2)
	h.untilMachines(map[string]Standing{"m1": InSync, "m2": InSync})

	canary.refuses.Store(3)
	f.writer.Published("", many(3))
	f.shows("", control.TakenBack, "the machine m1 refuses the snapshot: no such cluster")
	until(t, canary.Follower, 2)
	h.untilMachines(map[string]Standing{"m1": InSync, "m2": InSync})
	f.end() // another writer, and the same source tree
	f = h.fleet(check)
	f.writer.Published("", many(3))
	f.shows("", control.TakenBack, "the machine m1 refuses the snapshot: no such cluster")
	if runs := check.runs.Load(); runs == 0 {
		t.Error("no check has run")
	}
	canary.refuses.Store(0)
	if err := ResumeRollouts(t.Context(), h.options, "", Decision{By: "me@here"}); err != nil {
		t.Fatal(err)
	}
	until(t, other.Follower, 3)
	f.done()

	check.failed.Store(true)
	f.writer.Published("", many(4))
	f.shows("", control.TakenBack, "the check errors fails: too many errors")
	until(t, canary.Follower, 3)
	check.failed.Store(false)
	f.decisions(canary, other)
}

// decisions is the part of TestRollout about operators.
func (f *fleet) decisions(canary, other *judged) {
	f.Helper()
	me := Decision{By: "me@here", Reason: "incident 42"}
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	nothing := func(err error, want string) {
		f.Helper()
		if _, is := errors.AsType[*DecidedError](err); !is || !strings.Contains(err.Error(), want) {
			f.Errorf("%v, and not %q", err, want)
		}
	}
	must(PauseRollouts(f.Context(), f.options, "", me))
	nothing(PauseRollouts(f.Context(), f.options, "", me), "rollouts are paused already by me@here: incident 42")
	f.writer.Published("", many(5))
	is := f.shows("", control.RolloutPaused, "rollouts are paused by me@here: incident 42")
	if is.Rollout.Wave != 0 || is.Paused == nil || is.Paused.By != "me@here" {
		f.Errorf("%+v", is.Paused)
	}
	must(ResumeRollouts(f.Context(), f.options, "", me))
	until(f, canary.Follower, 5)
	must(PauseRollouts(f.Context(), f.options, "", me))
	f.shows("", control.RolloutPaused, "rollouts are paused by me@here: incident 42")
	until(f, other.Follower, 3)
	must(AbortRollout(f.Context(), f.options, "", me))
	until(f, canary.Follower, 3)
	f.shows("", control.TakenBack, "aborted by me@here: incident 42")
	nothing(AbortRollout(f.Context(), f.options, "", me), "no rollout runs")
	must(ResumeRollouts(f.Context(), f.options, "", me))
	f.writer.Tell("", control.Watch{Paused: &control.Shown{Decision: control.Decision{By: "you@there", Reason: "load test"}}})
	f.writer.Published("", many(6))
	envoytest.Eventually(f, patience, "the pause of the watch", func() (bool, string) {
		v := f.rollout("")
		return v != nil && v.Wave == 0 && strings.Contains(v.Message, "publishing is paused by you@there"), fmt.Sprint(v)
	})
	f.writer.Tell("", control.Watch{})
	until(f, other.Follower, 6)
	f.done()
	nothing(ResumeRollouts(f.Context(), f.options, "", me), "nothing to resume")
	if _, err := f.client.etcd.Put(f.Context(), f.options.Address.keys("").orders()+pauseOrder, "garbage"); err != nil {
		f.Fatal(err)
	}
	f.writer.Published("", many(7)) // a damaged pause is a pause
	envoytest.Eventually(f, patience, "the damaged pause", func() (bool, string) {
		v := f.rollout("")
		return v != nil && strings.Contains(v.Message, "rollouts are paused by somebody unknown"), fmt.Sprint(v)
	})
}

// TestRolloutOfNobody: a label that no machine has keeps the rollout from going on, and says so.
func TestRolloutOfNobody(t *testing.T) {
	t.Parallel()
	f := start(t).fleet()
	f.writer.Published("", many(1))
	m := f.machine("m1", "tier=canari")
	until(t, m.Follower, 1)
	f.untilMachines(map[string]Standing{"m1": InSync})
	f.writer.Published("", many(2))
	f.shows("", control.Acknowledging, "no machine has the label tier=canary: start one with --label tier=canary, or correct the wave")
	f.said.wait(t, func(e event.Event) bool { w, waits := e.(event.RolloutWaits); return waits && w.Wave == 1 })
	until(t, m.Follower, 1)
	canary := f.machine("m2", "tier=canary") // joins in the middle
	until(t, canary.Follower, 2)
	until(t, m.Follower, 2)
}

// TestRolloutOfTargets: the machines of a target get a change after all machines of another target.
func TestRolloutOfTargets(t *testing.T) {
	t.Parallel()
	f := start(t).fleet()
	p, err := waves.Plan{{Targets: []string{"eu"}, Quorum: 100, Bake: 100 * time.Millisecond}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	f.writer.Configure(p)
	head := func(target string) *Head {
		t.Helper()
		h, _, _, err := reader{client: f.client, keys: f.options.Address.keys(target)}.head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, target := range []string{"eu", "us"} {
		f.writer.Tell(target, control.Watch{Snapshot: "v1"})
		f.writer.Published(target, many(1))
		envoytest.Eventually(t, patience, "the first head", func() (bool, string) { return head(target) != nil, "" })
	}
	lease, err := f.client.grant(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	says := func(a Ack) {
		t.Helper()
		a.Layout, a.Waves = layout, true
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.client.etcd.Put(t.Context(), f.options.Address.keys("eu").machines()+"m1", string(text), clientv3.WithLease(lease)); err != nil {
			t.Fatal(err)
		}
	}
	says(Ack{Serial: head("eu").Serial, State: Published})
	f.writer.Published("us", many(2))
	f.writer.Published("eu", many(2))
	f.shows("eu", control.Acknowledging, "its machines acknowledge")
	is := f.shows("us", control.Acknowledging, "the target eu is first, and its machines do not all have its snapshot")
	if is.Rollout.Name != "eu" || is.Head.Resources != 1 {
		t.Errorf("%+v", is)
	}
	says(Ack{Serial: head("eu").Rollout.Candidate.Serial, State: Refused, Message: "no such cluster"})
	f.shows("eu", control.TakenBack, "the machine m1 refuses the snapshot")
	f.shows("us", control.Acknowledging, "the target eu is first")
	f.writer.Published("us", many(3))
	f.writer.Published("eu", many(3))
	envoytest.Eventually(t, patience, "the next candidate", func() (bool, string) {
		r := head("eu").running()
		return r != nil && r.Candidate.Resources == 3, fmt.Sprint(r)
	})
	says(Ack{Serial: head("eu").Rollout.Candidate.Serial, State: Published})
	for _, target := range []string{"eu", "us"} {
		envoytest.Eventually(t, patience, "the last head", func() (bool, string) {
			return head(target).Resources == 3 && head(target).Rollout == nil, fmt.Sprint(f.rollout(target))
		})
	}
}

// TestSilentMachines: silent machines don't count for a quorum, but a wave in which all are silent waits.
func TestSilentMachines(t *testing.T) {
	r := &Rollout{Candidate: Head{Serial: 5}, Waves: waves.Plan{{Quorum: 60}}, Open: 1}
	machine := func(name string, is Ack, silent int64) *Machine {
		is.Waves = true
		return &Machine{Name: name, Ack: is, Silent: silent}
	}
	has, behind := Ack{Serial: 5, State: Published}, Ack{Serial: 4, State: Published}
	for _, c := range []struct {
		machines []*Machine
		reached  bool
	}{
		{[]*Machine{machine("a", has, 0)}, true},
		{[]*Machine{machine("a", has, 0), machine("b", behind, 0)}, false},
		{[]*Machine{machine("a", has, 0), machine("b", behind, 100)}, true},
		{[]*Machine{machine("a", has, 0), machine("b", has, 100), machine("c", behind, 0)}, true},
		{[]*Machine{machine("a", behind, 100)}, false},
		{[]*Machine{{Name: "old program", Ack: has}}, false},
		{nil, false},
	} {
		if is := r.count("-", slices.Values(c.machines)); is.reached(r.Waves[0]) != c.reached || is.refuses != nil {
			t.Errorf("%+v: %+v", c.machines, is)
		}
	}
	refused := machine("b", Ack{Serial: 5, State: Refused}, 1000)
	if is := r.count("-", slices.Values([]*Machine{machine("a", has, 0), refused})); is.refuses != refused {
		t.Error("a refusal of a silent machine is lost")
	}
}

// TestForeignRollout: a head with an invalid rollout is refused as a whole.
func TestForeignRollout(t *testing.T) {
	valid := Head{Layout: layout, Serial: 2, Whole: 1, Step: Step{Pack: strings.Repeat("0", 64), Bytes: 1}}
	for name, change := range map[string]func(*Rollout){
		"":                    func(*Rollout) {},
		"no open wave":        func(r *Rollout) { r.Open = 0 },
		"too many open waves": func(r *Rollout) { r.Open = 2 },
		"a quorum of 0":       func(r *Rollout) { r.Waves[0].Quorum = 0 },
		"many waves":          func(r *Rollout) { r.Waves = make(waves.Plan, 100) },
		"an empty candidate":  func(r *Rollout) { r.Candidate = Head{} },
		"two rollouts":        func(r *Rollout) { r.Candidate.Rollout = &Rollout{} },
	} {
		h := valid
		h.Rollout = &Rollout{Candidate: valid, Waves: waves.Plan{{Quorum: 1}}, Open: 1}
		change(h.Rollout)
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseHead("/heads/-", text); (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
