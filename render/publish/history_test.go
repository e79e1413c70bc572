//go:build !light

package publish_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/render/trim"
	"xdspub/tools/memdir"
	"xdspub/watch/pipeline"
)

// event is a change of the tree in a history, and the end of its publish.
type event struct {
	// Wait is the time since the event before. Due trims run meanwhile.
	Wait time.Duration
	// Leap is by how much the clock is set before the event.
	Leap time.Duration
	Tree tree
	// End is "whole", "stopped", "killed", "failed" or "refused".
	End string
	// At is the number of the call at which End happens. At counts renames and removals, and with Any all calls
	// that change the disk. For a refusal, At is the number of the step.
	At  int
	Any bool
	// Undo is the number of the call after a refusal at which the writer is killed; 0 for none.
	Undo int
	// Anew means that another writer starts before the event. Inline means that this writer publishes endpoints
	// inline.
	Anew, Inline bool
	// Hand is the number of the endpoint file that somebody removes before the event, from 1; 0 for none.
	Hand int
}

// history is a sequence of events for one output directory. Confirmed means that an Envoy confirms the steps.
type history struct {
	Confirmed bool
	Events    []event
}

func (h history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "confirmed: %t\n", h.Confirmed)
	for i, e := range h.Events {
		fmt.Fprintf(&b, "%d: after %v", i+1, e.Wait)
		if e.Leap != 0 {
			fmt.Fprintf(&b, ", the clock set by %v", e.Leap)
		}
		if e.Anew {
			fmt.Fprintf(&b, ", anew, inline %t", e.Inline)
		}
		if e.Hand > 0 {
			fmt.Fprintf(&b, ", eds/c%d removed by hand", e.Hand-1)
		}
		fmt.Fprintf(&b, ", %s", e.End)
		if e.End != "whole" {
			fmt.Fprintf(&b, " at %d", e.At)
		}
		if e.End == "refused" && e.Undo > 0 {
			fmt.Fprintf(&b, ", its undo killed at %d", e.Undo)
		}
		fmt.Fprintf(&b, "\n   %+v\n", e.Tree)
	}
	return b.String()
}

const trimDelay = drains

// newHistory returns a random history. Its trees often repeat, because most faults came from resources that
// went, came back and were interrupted.
func newHistory(r *rand.Rand) history {
	h := history{Confirmed: r.IntN(3) == 0}
	var had []tree
	var g tree
	for range 8 {
		g.edit(r)
	}
	g.mend()
	toAndFro := r.IntN(3) == 0
	for i := range 3 + r.IntN(4) {
		e := event{End: "whole", Tree: g}
		if toAndFro && i > 1 {
			e.Tree = had[i-2]
		} else if len(had) > 1 && r.IntN(3) == 0 {
			e.Tree = had[r.IntN(len(had)-1)]
		} else if len(had) > 0 {
			for range 1 + r.IntN(3) {
				g.edit(r)
			}
			g.mend()
			e.Tree = g
		}
		g = e.Tree
		had = append(had, e.Tree)
		e.Wait = []time.Duration{0, time.Second, 20 * time.Second, trimDelay / 2, trimDelay - time.Second, trimDelay + time.Second}[r.IntN(6)]
		if r.IntN(2) == 0 && !(toAndFro && i < 2) {
			e.End = []string{"stopped", "killed", "failed", "refused"}[r.IntN(4)]
			e.At = 1 + r.IntN(14)
			if e.Any = r.IntN(2) == 0; e.Any {
				e.At = 1 + r.IntN(90)
			}
		}
		if e.End == "refused" {
			h.Confirmed = true
			e.At = 1 + r.IntN(6)
			if r.IntN(3) == 0 {
				e.Undo = 1 + r.IntN(14)
				if e.Any {
					e.Undo = 1 + r.IntN(90)
				}
			}
		}
		if r.IntN(8) == 0 {
			e.Anew, e.Inline = true, r.IntN(2) == 0
		}
		if r.IntN(16) == 0 {
			e.Leap = []time.Duration{time.Hour, -time.Hour, 5 * time.Minute}[r.IntN(3)]
		}
		if r.IntN(16) == 0 {
			e.Hand = 1 + r.IntN(3)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

// stage holds what a player of histories keeps from one history to the next.
type stage struct {
	dir    string
	quarry quarry
	known  map[string][]resource
	calls  int
}

func newStage(dir string) *stage {
	return &stage{dir: dir, quarry: quarry{}, known: map[string][]resource{}}
}

// play is a history while it is played.
type play struct {
	*stage
	history
	out  string
	log  []string
	held *held
	p    *pipeline.Pipeline
	d    *publish.Dir
	leap time.Duration // by how much the clock was set in total
	// passed is by how much the clock was set forward while no writer saw it: the next writer takes that for
	// time that passed. unseen is by how much the clock was set without the notice of the current writer.
	passed, unseen time.Duration
	next           time.Time // the time of the next trim
	last           *planner.Plan

	// The calls that change the disk: under is the running call, counted the number of calls (all of them, or
	// only renames and removals), and then runs at the call number at.
	under   string
	any     bool
	counted int
	at      int
	then    func() error
	dead    bool

	fault string // the first fault
}

var errDead = errors.New("dead")

// wrong records a fault, if it is the first.
func (p *play) wrong(format string, args ...any) {
	if p.fault == "" {
		p.fault = fmt.Sprintf(format, args...)
		p.note("WRONG: %s", p.fault)
	}
}

func (p *play) must(err error) {
	if err != nil {
		p.wrong("%v", err)
	}
}

func (p *play) note(format string, args ...any) {
	p.log = append(p.log, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// now returns the time of the clock, which may have been set.
func (p *play) now() time.Time  { return time.Now().Add(p.leap) }
func (p *play) time() time.Time { return time.Now().Add(p.passed) }

// before runs before each call that changes the disk, when the call before has its effect.
func (p *play) before(call string) error {
	p.made()
	p.calls++
	if p.dead {
		return errDead
	}
	if p.any || strings.HasPrefix(call, "rename") || strings.HasPrefix(call, "remove") {
		p.counted++
		if p.counted == p.at {
			p.note("-- at %s", call)
			if err := p.then(); err != nil {
				return err
			}
		}
	}
	p.under = call
	return nil
}

// made shows the effect of the last call to the Envoy.
func (p *play) made() {
	op, names, _ := strings.Cut(p.under, " ")
	p.under = ""
	if op != "rename" && op != "remove" {
		return
	}
	file := names[strings.LastIndexByte(names, ' ')+1:]
	if strings.HasPrefix(file, ".xdspub") {
		return
	}
	p.note("%s %s", op, file)
	if op == "remove" {
		if wrong := p.held.removed(file, p.time()); wrong != "" {
			p.wrong("%s", wrong)
		}
		return
	}
	data, err := os.ReadFile(filepath.Join(p.out, file))
	p.must(err)
	if wrong := p.held.written(file, string(data), p.time()); wrong != "" {
		p.wrong("%s", wrong)
	}
}

// open starts another writer.
func (p *play) open(inline bool) {
	if p.d != nil {
		p.dead = false
		p.must(p.d.Close())
		p.made()
	}
	start := time.Now()
	clock := trim.NewClock(func() (time.Time, time.Duration) { return p.now().Round(0), time.Since(start) })
	o := pipeline.Options{Clock: clock, Source: check.Options{Path: p.out + "-source"}, Out: p.out, EnvoyPath: "/xds", Format: render.Binary, InotifyBudget: 120, StepGap: time.Second, TrimDelay: trimDelay, Endpoints: planner.EndpointsFile}
	if inline {
		o.Endpoints = planner.EndpointsInline
	}
	if p.Confirmed {
		o.StepGap = 0
	}
	p.passed, p.unseen = p.passed+p.unseen, 0
	p.p = pipeline.New(o)
	var err error
	p.d, err = publish.OpenUnder(p.out, p.before)
	p.must(err)
}

// run plays a history, and returns its fault, or "".
func (s *stage) run(t *testing.T, h history) (fault string, log []string) {
	p := &play{stage: s, history: h, out: filepath.Join(s.dir, "out")}
	if len(s.known) > 20000 {
		clear(s.known)
	}
	p.held = newHeld(trimDelay, s.known)
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if err := os.RemoveAll(p.out); err != nil {
				t.Error(err)
			}
		}()
		p.open(false)
		defer func() {
			if p.dead = false; p.d != nil {
				p.must(p.d.Close())
			}
		}()
		for i, e := range h.Events {
			p.note("event %d", i+1)
			p.happens(e)
			if p.fault != "" {
				return
			}
		}
		p.settle(h.Events[len(h.Events)-1].Tree)
	})
	return p.fault, p.log
}

func (p *play) happens(e event) {
	p.wait(e.Wait)
	p.leap += e.Leap
	p.unseen = max(0, p.unseen+e.Leap)
	if e.Hand > 0 {
		p.byHand(fmt.Sprintf("eds/c%d/eds.pb", e.Hand-1))
	}
	if p.d == nil || e.Anew {
		p.open(e.Inline)
	}
	p.pass(e)
}

// wait lets time pass, and runs due trims, as a watch does.
func (p *play) wait(d time.Duration) {
	end := time.Now().Add(d)
	for p.d != nil && p.fault == "" && !p.next.IsZero() && !p.next.Add(-p.leap).After(end) {
		time.Sleep(time.Until(p.next.Add(-p.leap)))
		at := p.now()
		p.trim(context.Background())
		if !p.next.IsZero() && !p.next.After(at) {
			p.wrong("a trim says at %v to come again at %v", at, p.next)
		}
	}
	time.Sleep(time.Until(end))
}

func (p *play) trim(ctx context.Context) error {
	_, next, err := p.p.Trim(ctx, p.d, p.now())
	p.made()
	p.next = next
	return err
}

// byHand removes a published file.
func (p *play) byHand(file string) {
	err := os.Remove(filepath.Join(p.out, file))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	p.must(err)
	p.note("by hand: remove %s", file)
	p.held.lost(file, p.time())
}

// pass publishes a tree as a watch does, unless the event ends it.
func (p *play) pass(e event) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.any, p.counted, p.at, p.then = e.Any, 0, e.At, nil
	switch e.End {
	case "whole", "refused":
		p.at = 0
	case "stopped":
		p.then = func() error { cancel(); return nil }
	case "killed":
		p.then = p.die
	case "failed":
		p.then = func() error { return syscall.EIO }
	}
	err := p.attempt(ctx, e)
	p.made()
	p.held.want, p.at = nil, 0
	_, refused := errors.AsType[*publish.RefusedError](err)
	switch {
	case err == nil:
	case p.dead || errors.Is(err, context.Canceled):
		p.note("-- ends: %v", err)
		p.dead = false
		p.must(p.d.Close())
		p.under, p.d, p.next = "", nil, time.Time{}
	case refused, errors.Is(err, syscall.EIO):
		p.note("-- %v", err)
	default:
		p.wrong("%v", err)
	}
}

func (p *play) die() error {
	p.dead = true
	return errDead
}

func (p *play) recover(ctx context.Context) error {
	err := p.p.Recover(ctx, p.d)
	p.made()
	if err == nil {
		err = p.p.KeepTime(p.d)
		p.made()
	}
	if err == nil {
		p.unseen = 0
	}
	return err
}

func (p *play) attempt(ctx context.Context, e event) error {
	if err := p.recover(ctx); err != nil {
		return err
	}
	plan, list, err := p.p.Plan(context.Background(), p.quarry.snapshot(e.Tree), p.now())
	p.must(err)
	p.last = plan
	switch {
	case plan == nil:
		p.note("-- %v", list)
		return p.trim(ctx)
	case plan.Held != nil:
		p.note("-- is held")
		return p.trim(ctx)
	}
	p.held.want = make(map[string]string)
	for _, s := range plan.Change.Steps {
		for _, f := range s.Write {
			p.held.want[f.Path] = string(f.Data)
		}
	}
	if p.Confirmed {
		change := plan.Change
		left, err := publish.Pending(p.out, change, publish.Options{})
		p.must(err)
		if n := len(left.Steps); n > 0 {
			e.At = 1 + (e.At-1)%n // a step that moves files
		}
		change.Confirm = &confirmer{p, e, plan.ID, 0, nil}
		if _, err := p.d.Publish(ctx, change); err != nil {
			return err
		}
		if err := p.d.Release(); err != nil {
			return err
		}
	} else if _, err := p.p.Publish(ctx, p.d, plan); err != nil {
		return err
	}
	p.made()
	p.held.want = nil
	return p.trim(ctx)
}

// confirmer is an Envoy that refuses one step.
type confirmer struct {
	*play
	event
	id    string
	step  int
	taken []string
}

func (c *confirmer) Before(context.Context, publish.Step) error { return nil }

func (c *confirmer) After(_ context.Context, s publish.Step) (bool, error) {
	c.made()
	if c.step++; c.End == "refused" && c.step == c.event.At {
		c.note("-- refused")
		c.held.want = nil
		if c.Undo > 0 {
			c.at, c.then = c.counted+c.Undo, c.die
		}
		return true, &publish.RefusedError{Keep: c.taken, Refusal: publish.Refusal{
			Snapshot: c.id, Time: c.now(), Step: s.Name, Findings: diag.List{{Severity: diag.Error, Message: "no"}},
		}}
	}
	for _, f := range s.Write {
		if top, _, _ := strings.Cut(f.Path, "/"); (top == "eds" || top == "sds") && c.held.names(f.Path) {
			c.taken = append(c.taken, f.Path)
		}
	}
	return true, nil
}

// settle publishes a tree without faults, and waits until everything is trimmed.
func (p *play) settle(g tree) {
	p.note("settles")
	p.open(false)
	p.must(p.recover(context.Background()))
	for _, g := range []tree{g, {}} {
		p.must(p.d.Release())
		p.pass(event{Tree: g, End: "whole"})
		if p.fault != "" {
			return
		}
		if p.last != nil {
			break
		}
	}
	p.wait(3 * trimDelay)
	if p.fault != "" {
		return
	}
	want := make(map[string]string)
	for _, s := range p.last.Change.Steps {
		for _, f := range s.Write {
			want[f.Path] = string(f.Data)
		}
	}
	clusters := parsed(p.held.disk[cdsFile])
	for _, r := range clusters {
		if !strings.Contains(want[cdsFile], r.bytes) {
			p.wrong("the cluster %s stays", r.name)
		}
	}
	for file, data := range want {
		if file == cdsFile {
			data = p.held.disk[file]
		}
		if p.held.disk[file] != data {
			p.wrong("%s is not what was published last", file)
		}
	}
	for file := range p.held.disk {
		if _, wanted := want[file]; !wanted {
			p.wrong("%s stays", file)
		}
	}
	p.records()
}

// records checks that the records are clean when no change is running.
func (p *play) records() {
	m, err := publish.ReadManifest(p.out)
	p.must(err)
	if len(m.Retired) > 0 {
		p.wrong("the record says that %v go", m.Retired)
	}
	drifted, err := m.Drifted(p.out)
	p.must(err)
	if len(drifted) > 0 || len(m.Files.Names()) != len(p.held.disk) {
		p.wrong("the record has %d files, there are %d, other than published are %v", len(m.Files.Names()), len(p.held.disk), drifted)
	}
	if in, err := publish.ReadIntent(p.out); in != nil || err != nil {
		p.wrong("left over: %+v, %v", in, err)
	}
	if bases, err := os.ReadDir(filepath.Join(p.out, ".xdspub/files")); len(bases) > 1 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.wrong("more than one base: %v, %v", bases, err)
	}
	for _, name := range []string{"stage", "undo"} {
		if left, err := os.ReadDir(filepath.Join(p.out, ".xdspub", name)); err != nil || len(left) > 0 {
			p.wrong("left over in %s: %v, %v", name, left, err)
		}
	}
}

// shrink returns a shorter history that also has a fault.
func (s *stage) shrink(t *testing.T, h history) history {
	fails := func(h history) bool {
		fault, _ := s.run(t, h)
		return fault != ""
	}
	for again := true; again; {
		again = false
		for i := range h.Events {
			for _, change := range []func(e *event){nil,
				func(e *event) { e.Leap = 0 }, func(e *event) { e.Hand = 0 }, func(e *event) { e.Anew, e.Inline = false, false },
				func(e *event) { e.End, e.At, e.Undo = "whole", 0, 0 }, func(e *event) { e.Undo = 0 }, func(e *event) { e.Wait = 0 },
			} {
				try := h
				try.Events = slices.Clone(h.Events)
				if change == nil {
					try.Events = slices.Delete(try.Events, i, i+1)
				} else {
					change(&try.Events[i])
				}
				if len(try.Events) > 0 && try.String() != h.String() && fails(try) {
					h, again = try, true
					break
				}
			}
			if again {
				break
			}
		}
	}
	return h
}

// TestHistories plays random histories of an output directory, with real files. After each move of a file,
// TestHistories checks that an Envoy, with its draining listeners, finds all that it needs.
//
// XDSPUB_HISTORIES is the number of histories, such as 100000, from a random seed (scripts/histories).
// XDSPUB_HISTORIES_SEED sets the seed.
func TestHistories(t *testing.T) {
	count, seed := 500, uint64(1)
	if testing.Short() {
		count = 50
	}
	var err error
	if text := os.Getenv("XDSPUB_HISTORIES"); text != "" {
		seed = rand.Uint64()
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("XDSPUB_HISTORIES_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("again: XDSPUB_HISTORIES=%d XDSPUB_HISTORIES_SEED=%d go test -run '^TestHistories$' ./render/publish", count, seed)
	path := os.Getenv("PATH")
	t.Cleanup(func() { os.Setenv("PATH", path) })
	os.Setenv("PATH", "") // so that no pass asks git for a commit
	var next, calls atomic.Int64
	t.Cleanup(func() { t.Logf("%d histories, %d calls", count, calls.Load()) })
	for player := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("player ", player), func(t *testing.T) {
			t.Parallel()
			s := newStage(memdir.New(t))
			defer func() { calls.Add(int64(s.calls)) }()
			for n := next.Add(1) - 1; n < int64(count); n = next.Add(1) - 1 {
				h := newHistory(rand.New(rand.NewPCG(seed, uint64(n))))
				if fault, _ := s.run(t, h); fault != "" {
					h = s.shrink(t, h)
					fault, log := s.run(t, h)
					t.Fatalf("seed %d, history %d: %s\n%s\n%s", seed, n, fault, h, strings.Join(log, "\n"))
				}
			}
		})
	}
}
