package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/source/revision"
	"xdspub/watch/notify"
)

// Watch publishes the source tree after each change, until ctx ends; then Watch returns nil. all holds the
// Options of each target, or a single Options without targets. Each target is published on its own goroutine,
// and waits for other targets only with Options.AllOrNothing. All targets share each look at the tree. Watch
// logs findings and the errors of reconciles, and the last valid output stays published. An error means that
// Watch can't watch the tree, or that no target could start.
func Watch(ctx context.Context, all []Options, o WatchOptions) error {
	return newSource(all, o).run(ctx)
}

// source is the watched source tree for all targets.
type source struct {
	options WatchOptions
	watcher watcher
	outs    atomic.Pointer[[]string] // absolute output directories, for the watcher

	looking chan struct{} // full while a goroutine looks; protects the fields down to looks
	all     []Options     // of the targets, by the current settings
	tree    *check.Tree
	unread  notify.Changes // changes of the source tree since the last read
	inlined []string       // files outside the tree whose contents resources have inlined
	said    diag.List      // the findings that all targets share, as last logged
	looks   uint64

	last atomic.Pointer[look]
	// distrusted means that a publisher panicked: the next look uses a new Tree.
	distrusted atomic.Bool

	running sync.WaitGroup // the publishers
	end     context.CancelFunc
	mu      sync.Mutex
	wanted  uint64 // number of the last request for a look
	whole   bool   // the next look is at the whole tree
	again   bool   // the next look logs all findings
	// publishers holds the publishers of the current targets.
	publishers map[publisherKey]*watching
	opened     map[string]string // real paths of the opened output directories, by given path
	notBegun   []error           // errors of the first publishers
	fatal      error             // the panic that ends the watch; nil for none
	first      int               // number of the first publishers
	idle       idleLook
	described  description
}

// description caches the author and the subject of a commit, for all targets.
type description struct {
	path                    string // of the source tree
	mu                      sync.Mutex
	commit, author, subject string
}

// publisherKey identifies a publisher. A target whose output moves gets another publisher.
type publisherKey struct{ target, out string }

func (o Options) key() publisherKey { return publisherKey{o.Target, o.Out} }

// look is the immutable result of one look at the source tree.
type look struct {
	n      uint64 // numbers looks, from 1
	wanted uint64 // the last request that this look answers: source.wanted at its start
	whole  uint64 // number of the last look at the whole tree
	read   uint64 // number of the last look that read new settings
	all    []Options
	result *check.Result
	err    error
	// revision waits for the git commit of the tree as read; nil after an error.
	revision func() string
	// agreement collects the answers of the targets; nil without AllOrNothing.
	agreement *agreement
}

// options returns the options of a publisher, and whether the settings still have its target with its output.
func (l *look) options(k publisherKey) (Options, bool) {
	i := slices.IndexFunc(l.all, func(o Options) bool { return o.key() == k })
	if i < 0 {
		return Options{}, false
	}
	return l.all[i], true
}

// idleLook counts the publishers that the look with the number n left idle.
type idleLook struct {
	n     uint64
	count int
}

// news tells a publisher to look again, or that its target is removed.
type news struct {
	reason string
	wanted uint64 // a look is new enough if its wanted is at least this
}

func newSource(all []Options, o WatchOptions) *source {
	s := &source{
		options: o, tree: Tree(all), looking: make(chan struct{}, 1),
		publishers: make(map[publisherKey]*watching), opened: make(map[string]string), end: func() {},
	}
	s.described.path = all[0].Source.Path
	s.configure(all)
	return s
}

// configure replaces the options of the targets.
func (s *source) configure(all []Options) {
	for i := range all {
		all[i].Revision, all[i].About = s.revision, s.about
	}
	s.all = all
	s.ignoreOuts()
}

// revision returns the git commit of the source tree at the last look; empty if unknown. Each look asks git
// once, for all targets, and revision waits for the answer.
func (s *source) revision(context.Context) string {
	if last := s.last.Load(); last != nil && last.revision != nil {
		return last.revision()
	}
	return ""
}

// about returns the author and the subject of a git commit of the source tree. about is safe for concurrent
// use.
func (s *source) about(ctx context.Context, commit string) (author, subject string) {
	d := &s.described
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.commit != commit {
		d.commit = commit
		d.author, d.subject = revision.About(ctx, d.path, commit)
	}
	return d.author, d.subject
}

func (s *source) run(ctx context.Context) (err error) {
	s.watcher, err = s.newWatcher(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, s.end = context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(crash.Guard(func() { s.watcher.Run(ctx) }, s.crashed))
	running.Go(crash.Again(ctx.Done(), func() { s.tellAll(ctx) }, s.options.Log.Crashed))
	defer running.Wait()
	defer s.end()
	s.first = len(s.all)
	s.adopt(ctx, true)
	s.running.Wait()
	s.mu.Lock()
	fatal := s.fatal
	s.mu.Unlock()
	if fatal != nil {
		return fatal
	}
	if s.failed() {
		return errors.Join(s.notBegun...)
	}
	return nil
}

// newWatcher returns the watcher of the source tree, or of the Remote.
func (s *source) newWatcher(ctx context.Context) (watcher, error) {
	at := s.options.Watch
	at.Files, at.Log = s.extraFiles(), s.options.Log
	if s.options.Remote != nil {
		return newRemoteWatcher(ctx, s.options.Remote, s.options.MaxStale, at)
	}
	at.Ignore, at.Skip = s.ignored, load.Hidden
	return watchTree(ctx, s.all[0].Source.Path, at)
}

// ask asks git for the commit of the source tree. A Remote has no commit.
func (s *source) ask(ctx context.Context) func() string {
	if s.options.Remote != nil {
		return func() string { return "" }
	}
	return revision.Ask(ctx, s.all[0].Source.Path)
}

// crashed ends the watch after a panic of the Watcher or of a publisher. A watch that goes on would look well, and
// would publish no change.
func (s *source) crashed(e *crash.Error) {
	s.options.Log.Crashed(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil {
		s.fatal = e
	}
	s.end()
}

// adopt starts a publisher for each new target, and ends the publishers of removed targets. first says that the
// watch begins.
func (s *source) adopt(ctx context.Context, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := make(map[publisherKey]*watching)
	for _, o := range s.all {
		w := s.publishers[o.key()]
		if w == nil {
			w = newWatching(s, o)
			w.first = first
			s.running.Go(crash.Guard(func() { w.run(ctx) }, s.crashed))
		}
		is[o.key()] = w
	}
	for k, w := range s.publishers {
		if is[k] == nil {
			w.tell(news{reason: removed})
		}
	}
	s.publishers = is
}

// cannotBegin records that one of the first publishers could not start. If none could, cannotBegin ends the
// watch.
func (s *source) cannotBegin(target string, err error) {
	if target != "" {
		err = fmt.Errorf("target %s: %w", target, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notBegun = append(s.notBegun, err)
	if len(s.notBegun) == s.first {
		s.end()
	}
}

// failed reports whether none of the first publishers could start.
func (s *source) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first > 0 && len(s.notBegun) >= s.first
}

// tellAll makes all publishers look again after a signal of the watcher or SIGHUP, shows changes of the Store, and logs
// the states of the publishers after SIGUSR1, until ctx ends.
func (s *source) tellAll(ctx context.Context) {
	var stored <-chan struct{}
	if s.options.Store != nil {
		stored = s.options.Store.Changed()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case r, ok := <-s.watcher.Signals():
			if !ok {
				return
			}
			s.tell(string(r))
		case <-stored:
			s.tell(connecting)
		case <-s.options.Hangup:
			s.tell(hangup)
		case <-s.options.Report:
			s.report()
		}
	}
}

// report logs the state of each publisher, sorted by target. report waits for no publisher, because a publisher may
// hang.
func (s *source) report() {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Values(s.publishers), func(a, b *watching) int { return strings.Compare(a.target, b.target) })
	s.mu.Unlock()
	for _, w := range all {
		if e := crash.Try(func() { w.changeLog.log.Write(w.status(time.Now())) }); e != nil {
			w.changeLog.log.Crashed(e)
		}
	}
}

func (s *source) tell(reason string) {
	n := news{reason: reason}
	if reason != connecting {
		n.wanted = s.want(reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.publishers {
		w.tell(n)
	}
}

// want requests a look that begins after this call, and returns the number of the request. Except for a change,
// the look is at the whole tree. For a starting publisher, want returns the last request if there is one.
func (s *source) want(reason string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason != starting || s.wanted == 0 {
		s.wanted++
		s.whole = s.whole || reason != string(notify.Change)
		s.again = s.again || reason == hangup
	}
	return s.wanted
}

// begin returns the requests that a look answers from now on, and clears them.
func (s *source) begin() (wanted uint64, whole, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted, whole, again = s.wanted, s.whole, s.again
	s.whole, s.again = false, false
	return wanted, whole, again
}

// look returns the last look at the source tree if it answers the request wanted. Otherwise look looks again
// for w, and tells the other publishers that the new look concerns. The error is the error of the look or of
// ctx.
func (s *source) look(ctx context.Context, w *watching, wanted uint64) (*look, error) {
	select {
	case s.looking <- struct{}{}:
		defer func() { <-s.looking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	last := s.last.Load()
	if last != nil && last.wanted >= wanted {
		return last, last.err
	}
	next, again := s.lookAgain(ctx, last)
	if ctx.Err() != nil { // while waiting for git, or reading
		s.tree, s.unread = Tree(s.all), notify.Changes{All: true} // the reader may still use the old tree
		return nil, ctx.Err()
	}
	if next.err == nil {
		s.sayShared(next.result, again)
	}
	if s.all[0].AllOrNothing {
		next.agreement = newAgreement(s.all)
	}
	s.last.Store(next)
	if last != nil && last.agreement != nil {
		last.agreement.outdate()
	}
	s.tellOthers(w, last, next)
	return next, next.err
}

func (s *source) lookAgain(ctx context.Context, last *look) (next *look, again bool) {
	s.looks++
	next = &look{n: s.looks}
	if last != nil {
		next.whole, next.read = last.whole, last.read
	}
	var whole bool
	next.wanted, whole, again = s.begin() // before reading the tree: later requests need another look
	s.watcher.Read(ctx, func(c notify.Changes) {
		// A request includes the events of changes just before the request.
		if s.distrusted.Swap(false) {
			s.tree, whole = Tree(s.all), true
		}
		s.unread = s.unread.And(c).And(notify.Changes{All: whole})
		if s.unread.All {
			next.whole = next.n
		}
		if next.result, next.err = s.check(ctx, next); next.err == nil {
			next.revision = s.ask(ctx)
		}
	})
	next.all = s.all
	return next, again
}

// tellOthers tells the publishers, except by, whose targets differ between the looks last and next. With
// AllOrNothing, tellOthers tells all publishers except by.
func (s *source) tellOthers(by *watching, last, next *look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.publishers {
		if w != by && (next.agreement != nil || !next.sameFor(w.target, last)) {
			w.tell(news{string(notify.Change), next.wanted})
		}
	}
}

// sameFor reports whether two looks found the same snapshot and findings for a target, with the same settings.
// sameFor returns false if last is nil or either look failed.
func (l *look) sameFor(target string, last *look) bool {
	if last == nil || l.read != last.read || l.result == nil || last.result == nil {
		return false
	}
	was, is := last.result.For(target), l.result.For(target)
	return was.Snapshot == is.Snapshot && reflect.DeepEqual(was.Diagnostics, is.Diagnostics)
}

// sayShared logs the findings that all targets share, if they have changed or again is true. Each target logs
// its own findings.
func (s *source) sayShared(r *check.Result, again bool) {
	if again || !reflect.DeepEqual(r.Shared, s.said) {
		s.said = r.Shared
		(&changeLog{log: s.options.Log, most: s.options.MaxFindings}).say(r.Shared)
	}
}

// check reads the settings and the source tree. Invalid settings are an error: the watch continues, and
// publishes nothing until the settings are valid.
func (s *source) check(ctx context.Context, of *look) (*check.Result, error) {
	if err := s.reload(ctx, of); err != nil {
		return nil, err
	}
	if err := s.watcher.Also(s.extraFiles()...); err != nil {
		return nil, err
	}
	s.tree.KeepApart(s.outputs()...)
	// The reader may outlive ctx, so it must not use s.
	t, changes := s.tree, s.unread
	checked, err := readAside(ctx, func(ctx context.Context) (*check.Result, error) {
		if changes.All {
			return t.Check(ctx)
		}
		return t.Update(ctx, changes.Paths)
	})
	if err != nil {
		return nil, err
	}
	s.unread = notify.Changes{}
	s.inlined = checked.Inlined
	return checked, s.watcher.Also(s.extraFiles()...)
}

// reload reads the settings again. Each publisher applies the new settings when it takes the look.
func (s *source) reload(ctx context.Context, of *look) error {
	if s.options.Reload == nil {
		return nil
	}
	type settings struct {
		all     []Options
		changed bool
	}
	is, err := readAside(ctx, func(context.Context) (is settings, err error) {
		is.all, is.changed, err = s.options.Reload()
		return is, err
	})
	if err == nil && is.changed {
		s.configure(is.all)
		s.tree, of.read = Tree(is.all), of.n
		s.options.Log.Write(event.SettingsRead{})
		s.adopt(ctx, false)
	}
	return err
}

// extraFiles returns the files that a look reads outside the tree.
func (s *source) extraFiles() []string {
	files := slices.Clone(s.inlined)
	files = append(files, s.all[0].Source.DescriptorSets...)
	for _, f := range []string{s.options.Settings, s.all[0].Source.Bootstrap} {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}

// outputs returns the output directories, with real paths for open directories.
func (s *source) outputs() (outs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.all {
		if out, ok := s.opened[o.Out]; ok {
			outs = append(outs, out)
		} else {
			outs = append(outs, o.Out)
		}
	}
	return outs
}

// recordOpen records the real path of an output directory that a publisher has opened.
func (s *source) recordOpen(given, out string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[given] = out
}

// ignored reports whether a path is inside an output directory, whose files change with each publish. A link in
// the tree may lead to an output directory, or a single-file source may lie beside an output directory.
func (s *source) ignored(path string) bool {
	return slices.ContainsFunc(*s.outs.Load(), func(out string) bool { return fspath.Within(path, out) })
}

// ignoreOuts makes the watcher ignore the current output directories.
func (s *source) ignoreOuts() {
	var outs []string
	for _, out := range s.outputs() {
		if out == "" {
			continue
		}
		if abs, err := filepath.Abs(out); err == nil {
			out = abs
		}
		outs = append(outs, out)
	}
	s.outs.Store(&outs)
}

// foundNothing records that a look after a rescan left a publisher idle. When the look has left all publishers
// idle, the next rescan may come later.
func (s *source) foundNothing(l *look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle.n != l.n {
		s.idle = idleLook{n: l.n}
	}
	if s.idle.count++; s.idle.count == len(s.publishers) {
		s.watcher.FoundNothing()
	}
}

// compress compresses the tree in memory. It does nothing and returns false while a goroutine looks at the
// tree.
func (s *source) compress() bool {
	select {
	case s.looking <- struct{}{}:
		s.tree.Compress()
		<-s.looking
		return true
	default:
		return false
	}
}
