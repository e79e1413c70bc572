package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/source/load"
	"xdspub/tools/fixture"
	"xdspub/tools/memdir"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/watch/pipeline"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// TestWatchHistories plays random histories of a watch: edits of its source tree, settings and output,
// passing time, refusals, interrupted publishes, restarts. At each point the watch must do the same as a new
// process: log the same, and leave the same bytes.
//
// The histories are the same each time. With XDSPUB_SOAK, such as 10m, TestWatchHistories plays new histories
// for that long (scripts/soak); XDSPUB_SOAK_SEED repeats one.
func TestWatchHistories(t *testing.T) {
	if text := os.Getenv("XDSPUB_SOAK_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		play(t, seed)
		return
	}
	for seed := range uint64(3) {
		play(t, seed)
	}
	if testing.Short() {
		return
	}
	goOn, seeds := func(played int) bool { return played < histories/atATime }, rand.New(rand.NewPCG(1, 0)).Uint64
	if text := os.Getenv("XDSPUB_SOAK"); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(length)
		goOn, seeds = func(int) bool { return time.Now().Before(end) }, rand.Uint64
	}
	t.Cleanup(func() {
		t.Log(happened.seen)
		for _, typ := range xds.Types {
			for _, kind := range []string{" added", " removed", " edited"} {
				if happened.seen[typ.API+kind] == 0 {
					t.Errorf("no %s was %s", typ.Noun, kind)
				}
			}
		}
		for _, what := range []string{
			string(Published), string(Invalid), string(Held), string(RefusedByEnvoy),
			wasDrained, wasInterrupted, wasRestarted, wasTrimmed, wasChangedAfterTrim, hadVariants,
		} {
			if happened.seen[what] == 0 {
				t.Errorf("no history has: %s", what)
			}
		}
	})
	var mu sync.Mutex
	next := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return seeds()
	}
	for range atATime {
		t.Run("random", func(t *testing.T) {
			t.Parallel()
			played := 0
			for ; goOn(played) && !t.Failed(); played++ {
				play(t, next())
			}
			t.Logf("%d histories", played)
		})
	}
}

const (
	histories = 44 // of each run of the tests: half a minute of CPU
	atATime   = 4
)

// play plays a history. Its clock moves only by events of the history.
func play(t *testing.T, seed uint64) {
	const turns = 40
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("again: XDSPUB_SOAK_SEED=%d go test -run TestWatchHistories ./watch", seed)
				}
			}()
			h := newHistory(t, rand.New(rand.NewPCG(seed, 0)))
			for range turns {
				if t.Failed() {
					return
				}
				h.next()
			}
			h.end()
		})
	})
}

// randomHistory is a watch with its events.
type randomHistory struct {
	t      *testing.T
	random *rand.Rand
	tree   *sourceTree
	dir    string
	w      *watching
	o      Options // the current settings
	edited bool    // the settings have changed since the watch read them
	log    fixture.Ender
	answers
	// said describes the events so far, for failure messages.
	said []string
	// damaged means that somebody has changed the output directory by hand. Only a pass that reads the whole
	// directory sees that.
	damaged bool
	// trimmed means that the last turn trimmed a cluster and trusted its knowledge of the directory.
	trimmed bool
}

func newHistory(t *testing.T, random *rand.Rand) *randomHistory {
	start := time.Now()
	dir := memdir.New(t)
	if info, err := os.Stat(dir); err == nil { // the clock of the files
		time.Sleep(info.ModTime().Sub(start))
	}
	h := &randomHistory{t: t, random: random, dir: dir, tree: newSourceTree(t, random, filepath.Join(dir, "src"))}
	h.o = Options{Options: pipeline.Options{
		Source: check.Options{Path: h.tree.src}, Out: filepath.Join(dir, "out"), EnvoyPath: "/envoy", Format: one(random, render.Formats[:]), TrimDelay: 10 * time.Minute,
	}}
	h.configure()
	h.start()
	t.Cleanup(h.stop)
	h.turn(starting, noAnswers)
	return h
}

// configure changes settings.
func (h *randomHistory) configure() {
	h.o.Endpoints = one(h.random, []planner.EndpointsMode{planner.EndpointsAuto, planner.EndpointsAuto, planner.EndpointsFile, planner.EndpointsInline})
	h.o.InotifyBudget = one(h.random, []int{4, 8, 12, 100, 100, 100}) // the first are too small for some trees
	h.o.Source.AllowEmpty = h.random.IntN(2) == 0
	h.o.WarningsAsErrors = h.random.IntN(20) == 0
	h.o.Source.Disable = one(h.random, [][]string{{"bad-trusted-ca"}, {"bad-trusted-ca", "orphan-endpoints"}}) // the trees have no real certificates
	h.o.Source.Client = one(h.random, []*variants.Client{nil, {}, {Parameters: params.Parameters{"env": "prod"}}, {Parameters: params.Parameters{"env": "test"}}})
	h.edited = true
}

// start begins the watch, as Watch does.
func (h *randomHistory) start() {
	h.t.Helper()
	h.o.Log = event.New(&h.log)
	h.o.Confirm = func(of publish.Refusal) publish.Confirmer { return h.confirmer(of) }
	h.edited = false
	h.w = newWatching(newSource([]Options{h.o}, WatchOptions{Log: h.o.Log, Reload: func() ([]Options, bool, error) {
		edited := h.edited
		h.edited = false
		return []Options{h.o}, edited, nil
	}}), h.o)
	var err error
	// This Watcher does nothing: the history itself reports changes.
	h.w.source.watcher, err = watchTree(h.t.Context(), h.o.Source.Path, notify.Options{Poll: time.Hour, Skip: load.Hidden})
	h.tree.must(err)
	h.tree.must(h.w.Open())
	h.w.retry = h.random.IntN(4) == 0
}

func (h *randomHistory) stop() {
	h.w.Controller.Close()
	h.w.control.Close()
	ended, end := context.WithCancel(context.Background())
	end()
	h.w.source.watcher.Run(ended)
}

// next plays the next edits, other events and a turn of the watch.
func (h *randomHistory) next() {
	for range one(h.random, []int{0, 1, 1, 1, 2, 3, 6}) {
		h.tree.edit()
	}
	if h.random.IntN(6) > 0 {
		h.tree.heal()
	}
	a, reason := h.answersNext(), string(notify.Change)
	switch n := h.random.IntN(20); {
	case n < 2:
		d := time.Duration(h.random.IntN(16)) * time.Minute
		if until := time.Until(h.w.nextTrim); until > 0 && h.random.IntN(2) == 0 {
			d = until
		}
		h.pass(d)
		if !h.w.nextTrim.IsZero() && !h.w.nextTrim.After(time.Now()) {
			reason = trimming
		}
	case n < 4:
		reason = string(notify.Rescan)
	case n < 5:
		h.w.retryHeld()
		reason = "SIGHUP"
	case n < 7:
		h.configure()
		if n == 6 {
			happened.add(wasRestarted)
			h.stop()
			h.start()
			reason = starting
		}
	case n < 9:
		h.harm()
		if n == 8 {
			reason = string(notify.Rescan)
		}
	}
	h.turn(reason, a)
}

// answersNext returns what Envoy says next.
func (h *randomHistory) answersNext() answers {
	a := noAnswers
	a.confirms, a.silent = h.random.IntN(2) == 0, h.random.IntN(4) == 0
	step := one(h.random, []int{0, 0, 0, 1, 1, 2, 3})
	switch h.random.IntN(10) {
	case 0, 1:
		a.confirms, a.refuses = true, step
	case 2:
		a.confirms, a.fails = true, step
	case 3:
		a.ends = step
	}
	return a
}

// pass lets time pass.
func (h *randomHistory) pass(d time.Duration) {
	h.w.control.Unbind() // its goroutine would stop the fake clock
	time.Sleep(d)
}

// harm changes the output directory by hand.
func (h *randomHistory) harm() {
	out := h.w.options.Out
	files := slices.DeleteFunc(h.names(out), func(name string) bool { return strings.HasPrefix(name, ".xdspub") })
	if len(files) == 0 {
		return
	}
	file := filepath.Join(out, one(h.random, files))
	h.damaged = true
	h.said = append(h.said, "by hand: "+strings.TrimPrefix(file, out+"/"))
	switch h.random.IntN(5) {
	case 0:
		h.tree.must(os.RemoveAll(out))
	case 1:
		h.tree.must(os.RemoveAll(filepath.Dir(file)))
	case 2, 3:
		h.tree.must(os.Remove(file))
	case 4:
		data, err := os.ReadFile(file)
		h.tree.must(err)
		h.tree.must(os.WriteFile(file, data[:len(data)/2], 0o644))
	}
}

// end heals the tree, and waits until all retired files are removed. The output then follows from the tree
// alone, and no file moves any more.
func (h *randomHistory) end() {
	h.o.WarningsAsErrors, h.o.InotifyBudget, h.edited = false, 100, true
	h.tree.heal()
	for range 2 { // after a trim, the second rescan may publish more than the first
		h.turn(string(notify.Rescan), noAnswers)
		h.pass(2 * h.o.TrimDelay)
		h.turn(trimming, noAnswers)
	}
	if result := h.turn(string(notify.Rescan), noAnswers); result.Outcome != control.Published {
		return // the tree is invalid, or has no transition from the published snapshot
	}
	before := h.contents(h.w.options.Out)
	h.turn(string(notify.Rescan), noAnswers)
	if diff := cmp.Diff(before, h.contents(h.w.options.Out)); diff != "" {
		h.t.Errorf("nothing changed, and something moved (-before +after):\n%s", diff)
	}
	m := h.record()
	if len(m.Retired) > 0 {
		h.t.Errorf("%v are not trimmed", m.Retired)
	}
	if m.InlineRoutesBudget > 0 {
		return // which routes are inline then does not follow from the tree
	}
	h.o.Endpoints = planner.EndpointsMode(m.EDSMode)
	published := h.cold(filepath.Join(h.dir, "empty"), starting, noAnswers, false).Files
	for _, files := range []map[string]string{before, published} {
		maps.DeleteFunc(files, func(name, _ string) bool {
			return strings.HasPrefix(name, ".xdspub/") || strings.HasPrefix(name, "rtds/")
		}) // files of empty layers stay
	}
	if diff := cmp.Diff(published, before); diff != "" {
		h.t.Errorf("what is out (-of a new directory +of this one):\n%s", diff)
	}
}

// turn runs a turn of the watch, and the same turn of a new process with a copy of the output directory, and
// compares them.
func (h *randomHistory) turn(reason string, a answers) control.Result {
	h.t.Helper()
	changed := h.tree.take()
	h.said = append(h.said, strings.ReplaceAll(fmt.Sprintf("%s, %+v, changed: %v", reason, a, changed), h.tree.src+"/", ""))
	out, copied := h.w.options.Out, filepath.Join(h.dir, "cold")
	h.copy(out, copied)
	h.w.source.unread = h.w.source.unread.And(notify.Changes{Paths: changed})
	before, retry, waiting := h.settled(), h.w.retry, h.retiredClusters()
	got := h.warm(reason, a)
	h.said = append(h.said, fmt.Sprintf("\t%s %s", got.Result.Outcome, got.Error))
	want := h.cold(copied, reason, a, retry)
	ended := a.ends >= 0 && got.Error != ""
	switch {
	case h.damaged && (reason == string(notify.Change) || reason == trimming): // such a turn trusts its knowledge
	default:
		h.damaged = false
		h.compare(want, got)
	}
	is := h.settled()
	if before != nil && is != nil {
		compareDelta(h.t, before, is)
		if changes, ok := is.ChangesSince(before); ok && reason == string(notify.Change) {
			happened.count(changes)
			if h.trimmed {
				happened.add(wasChangedAfterTrim)
			}
		}
	}
	if h.trimmed = reason == trimming && before != nil && is != nil && h.retiredClusters() < waiting; h.trimmed {
		happened.add(wasTrimmed)
	}
	if len(h.record().DrainingWatches) > 0 {
		happened.add(wasDrained)
	}
	if ended {
		happened.add(wasInterrupted)
		h.stop()
		h.start()
		return h.turn(starting, noAnswers)
	}
	return got.Result
}

// settled returns the snapshot that the output directory has, as far as the watch knows; nil if unknown.
func (h *randomHistory) settled() *xds.Snapshot {
	if !h.w.state.trusted() {
		return nil
	}
	return h.w.changeLog.snapshot
}

// happened counts the events of all histories in this process: published edits by type and kind, verdicts, and
// the events below.
var happened events

type events struct {
	mu   sync.Mutex
	seen map[string]int
}

const (
	wasDrained          = "a listener drains"
	wasInterrupted      = "interruption"
	wasRestarted        = "restart"
	wasTrimmed          = "trim"
	wasChangedAfterTrim = "change after a trim"
	hadVariants         = "published of a tree with variants"
)

func (c *events) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = make(map[string]int)
	}
	c.seen[what]++
}

func (c *events) count(list []xds.Edited) {
	for _, e := range list {
		kind := "edited"
		switch {
		case e.Was == nil:
			kind = "added"
		case e.Is == nil:
			kind = "removed"
		}
		c.add(e.Key().Type.API + " " + kind)
	}
}

// retiredClusters counts the published clusters that wait for their trim.
func (h *randomHistory) retiredClusters() (n int) {
	h.t.Helper()
	for _, g := range h.record().Retired {
		if g.Cluster != "" {
			n++
		}
	}
	return n
}

// record returns the record of the output directory.
func (h *randomHistory) record() publish.Manifest {
	h.t.Helper()
	m, err := publish.ReadManifest(h.w.options.Out)
	h.tree.must(err)
	return m
}

// copy replaces the output directory to by a copy of another.
func (h *randomHistory) copy(from, to string) {
	h.t.Helper()
	h.tree.must(os.RemoveAll(to))
	if _, err := os.Stat(from); err != nil {
		return
	}
	h.tree.must(fs.WalkDir(os.DirFS(from), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		at := filepath.Join(to, name)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.Mkdir(at, info.Mode())
		case !e.Type().IsRegular(): // the control socket
			return nil
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(at, data, info.Mode())
		}
		return err
	}))
}

// seen is the result of a turn: its log and its files.
type seen struct {
	Findings diag.List // of the tree; only if Checked
	Checked  bool
	Result   control.Result
	Error    string
	NextTrim time.Time         // only without an error
	Files    map[string]string // in the output directory
}

// compare fails if a watch differs from a new process.
func (h *randomHistory) compare(want, got seen) {
	h.t.Helper()
	if !want.Checked {
		got.Findings, got.Checked = nil, false
	}
	if want.Error != "" {
		got.NextTrim = time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Fatalf("%s\n\n(-a new process +the watch):\n%s", strings.Join(h.said, "\n"), diff)
	}
}

// warm runs a turn of the watch.
func (h *randomHistory) warm(reason string, a answers) seen {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	h.answers = a
	h.log = fixture.Ender{Steps: a.ends + 1, End: cancel}
	result, err := h.w.turn(ctx, reason)
	return seen{Findings: slices.Clip(h.w.changeLog.findings), Checked: true, Result: result, Error: said(err, h.w.options.Out), NextTrim: h.w.nextTrim, Files: h.contents(h.w.options.Out)}
}

// cold runs the same turn in a new process, with a copy of the output directory.
func (h *randomHistory) cold(out, reason string, a answers, retry bool) seen {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	o := h.o
	o.Out, o.Log, o.Confirm = out, event.New(&fixture.Ender{Steps: a.ends + 1, End: cancel}), a.confirmer
	c := New(o)
	defer c.Close()
	if retry {
		c.RetryHeld()
	}
	var s seen
	err := s.pass(ctx, c, reason)
	if s.Error = strings.ReplaceAll(said(err, out), out, h.w.options.Out); err != nil {
		s.Result.Outcome, s.NextTrim = control.Failed, time.Time{}
	}
	s.Files = h.contents(out)
	return s
}

// pass runs the part of a turn between the look at the tree and the trim.
func (s *seen) pass(ctx context.Context, c *Controller, reason string) error {
	if reason != trimming {
		checked, err := Tree([]Options{c.options}).Check(ctx)
		if err != nil {
			return err
		}
		if err := c.Open(); err != nil {
			return err
		}
		if err := c.Prepare(ctx); err != nil {
			return err
		}
		plan, err := c.Plan(ctx, checked)
		if err != nil {
			return err
		}
		s.Findings, s.Checked = slices.Clip(checked.Diagnostics), true
		o, err := c.Publish(ctx, checked, plan)
		s.Result = resultOf(o)
		if err != nil {
			return err
		}
		if happened.add(string(o.Verdict)); o.Verdict == Published && checked.Variants.Varies() {
			happened.add(hadVariants)
		}
	} else if err := c.Open(); err != nil {
		return err
	}
	_, next, err := c.Trim(ctx)
	s.NextTrim = next
	return err
}

func said(err error, out string) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), out, "OUT")
}

// contents returns the files of an output directory, with their modes.
func (h *randomHistory) contents(out string) map[string]string {
	h.t.Helper()
	files := make(map[string]string)
	for _, name := range h.names(out) {
		path := filepath.Join(out, name)
		info, err := os.Stat(path)
		h.tree.must(err)
		data, err := os.ReadFile(path)
		h.tree.must(err)
		files[name] = fmt.Sprintf("%v\n%s", info.Mode(), data)
	}
	return files
}

// names returns the paths of the regular files in an output directory, except the lock.
func (h *randomHistory) names(out string) (names []string) {
	h.t.Helper()
	h.tree.must(fs.WalkDir(os.DirFS(out), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && name != ".xdspub/lock" {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// compareDelta compares the result of Diff with a comparison of all resources.
func compareDelta(t *testing.T, old, is *xds.Snapshot) {
	t.Helper()
	var want, got []string
	text := func(s *xds.Snapshot, k xds.Key) string {
		list := s.Named(k)
		if len(list) == 0 {
			return ""
		}
		data, err := list[0].Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return "resource " + string(data)
	}
	seen := make(map[xds.Key]bool)
	for _, r := range slices.Concat(old.All(), is.All()) {
		if seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		switch was, now := text(old, r.Key), text(is, r.Key); {
		case was == now:
		case was == "":
			want = append(want, fmt.Sprint("added ", r.Key))
		case now == "":
			want = append(want, fmt.Sprint("removed ", r.Key))
		default:
			want = append(want, fmt.Sprint("changed ", r.Key))
		}
	}
	d := is.Diff(old)
	for what, list := range map[string][]*xds.Resource{"added ": d.Added, "removed ": d.Removed, "changed ": d.Changed} {
		for _, r := range list {
			got = append(got, fmt.Sprint(what, r.Key))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the difference (-want +got):\n%s", diff)
	}
}

// answers has the numbers of the steps that Envoy refuses, at which the Confirmer fails, and at which the
// process ends; below 0 for none.
type answers struct {
	confirms             bool // a Confirmer exists
	refuses, fails, ends int
	silent               bool // no Envoy answers
}

var noAnswers = answers{refuses: -1, fails: -1, ends: -1}

func (a answers) confirmer(of publish.Refusal) publish.Confirmer {
	if !a.confirms {
		return nil
	}
	return &chance{answers: a, of: of, step: -1}
}

// chance is a Confirmer with a preset answer.
type chance struct {
	answers
	of   publish.Refusal
	step int
	kept []string
}

func (c *chance) Before(_ context.Context, s publish.Step) error {
	if c.step++; c.step == c.fails {
		return errors.New("no Envoy could confirm")
	}
	return nil
}

func (c *chance) After(_ context.Context, s publish.Step) (answered bool, err error) {
	if c.step != c.refuses {
		for _, f := range s.Write {
			if strings.HasPrefix(f.Path, "sds/") || strings.HasPrefix(f.Path, "eds/") {
				c.kept = append(c.kept, f.Path)
			}
		}
		return !c.silent, nil
	}
	refusal := c.of
	refusal.Time, refusal.Step = time.Now().UTC().Round(0), s.Name
	refusal.Findings = diag.List{{Code: "refused-by-envoy", Message: "by chance"}}
	return true, &publish.RefusedError{Refusal: refusal, Keep: c.kept}
}
