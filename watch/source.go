package watch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/source/revision"
	"xdspub/watch/notify"
)

// Watch publishes the source tree whenever it changes, until ctx ends: then it returns nil. all are the
// Options for each of its targets, or the only ones. The targets do not wait for each other: each is published on a
// goroutine of its own, and a look at the tree is for all of them. Watch logs the findings of the tree
// and the errors of a reconcile, and the last valid output stays published. An error means that the watch
// could not begin for any target.
func Watch(ctx context.Context, all []Options, o WatchOptions) error {
	return newSource(all, o).run(ctx)
}

// source is a source tree that is watched for all its targets.
type source struct {
	options WatchOptions
	watcher *notify.Watcher
	outs    atomic.Pointer[[]string] // the output directories, absolute, for the watcher

	looking chan struct{} // is full while somebody looks, whom the following belongs to
	all     []Options     // of the targets, as the settings say now
	tree    *check.Tree
	unread  notify.Changes // of the source tree, since it was read
	inlined []string       // files that go into resources
	said    diag.List      // the findings that all targets have, as logged last
	looks   uint64

	last atomic.Pointer[look]

	running sync.WaitGroup // the publishers
	end     context.CancelFunc
	mu      sync.Mutex
	wanted  uint64 // counts what says to look again
	whole   bool   // at the whole tree
	again   bool   // and to log all findings
	// publishers are those of the targets that there are.
	publishers map[publisherKey]*watching
	opened     map[string]string // where output directories led when they were opened, by their paths
	notBegun   []error           // of the first publishers
	first      int               // how many these were
	idle       idleLook
}

// publisherKey tells apart who publishes: a target whose output moves has another one.
type publisherKey struct{ target, out string }

func (o Options) key() publisherKey { return publisherKey{o.Target, o.Out} }

// look is what one look at the source tree found. It does not change.
type look struct {
	n      uint64 // numbers looks, from 1
	wanted uint64 // how often looks were wanted, when it began
	whole  uint64 // the last look that was at the whole tree
	read   uint64 // the last look that met new settings
	all    []Options
	result *check.Result
	err    error
	// revision waits for the git commit of the tree as it was read; nil after an error.
	revision func() string
	// agreement is what the targets say to it; nil where each is published by itself.
	agreement *agreement
}

// options returns those of a publisher. It is not ok where the settings have that target no more.
func (l *look) options(k publisherKey) (Options, bool) {
	i := slices.IndexFunc(l.all, func(o Options) bool { return o.key() == k })
	if i < 0 {
		return Options{}, false
	}
	return l.all[i], true
}

// idleLook counts the publishers for which nothing has changed at a look.
type idleLook struct {
	n     uint64
	count int
}

// news has a publisher look again.
type news struct {
	reason string
	wanted uint64 // the least that the look has to have
}

func newSource(all []Options, o WatchOptions) *source {
	s := &source{options: o, tree: Tree(all), looking: make(chan struct{}, 1), publishers: make(map[publisherKey]*watching), opened: make(map[string]string), end: func() {}}
	s.configure(all)
	return s
}

// configure takes up the options of the targets.
func (s *source) configure(all []Options) {
	for i := range all {
		all[i].Revision = s.revision
	}
	s.all = all
	s.ignoreOuts()
}

// revision returns the git commit of the source tree as it was read last: one look asks git once, for all
// targets.
func (s *source) revision(context.Context) string {
	if last := s.last.Load(); last != nil && last.revision != nil {
		return last.revision()
	}
	return ""
}

func (s *source) run(ctx context.Context) (err error) {
	at := s.options.Watch
	at.Ignore, at.Skip, at.Files, at.Log = s.ignored, load.Hidden, s.extraFiles(), s.options.Log
	s.watcher, err = notify.New(ctx, s.all[0].Source.Path, at)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, s.end = context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.watcher.Run(ctx) })
	running.Go(func() { s.tellAll(ctx) })
	defer running.Wait()
	defer s.end()
	s.first = len(s.all)
	s.adopt(ctx, true)
	s.running.Wait()
	if s.failed() {
		return errors.Join(s.notBegun...)
	}
	return nil
}

// adopt has a publisher for each target, and ends those whose target is gone. first says that these are
// the first ones.
func (s *source) adopt(ctx context.Context, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := make(map[publisherKey]*watching)
	for _, o := range s.all {
		w := s.publishers[o.key()]
		if w == nil {
			w = newWatching(s, o)
			w.first = first
			s.running.Go(func() { w.run(ctx) })
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

// cannotBegin takes up that one of the first publishers could not begin. Where none could, the watch ends.
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

// failed reports whether no publisher could begin.
func (s *source) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first > 0 && len(s.notBegun) >= s.first
}

// tellAll has all publishers look again when something says so, until ctx ends.
func (s *source) tellAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, ok := <-s.watcher.Signals():
			if !ok {
				return
			}
			s.tell(string(r))
		case <-s.options.Hangup:
			s.tell(hangup)
		}
	}
}

func (s *source) tell(reason string) {
	n := news{reason, s.want(reason)}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.publishers {
		w.tell(n)
	}
}

// want asks for a look that begins from here on, and for what is no event at the whole tree. Who starts is content
// with a look that others have wanted.
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

// begin takes what is wanted.
func (s *source) begin() (wanted uint64, whole, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted, whole, again = s.wanted, s.whole, s.again
	s.whole, s.again = false, false
	return wanted, whole, again
}

// look returns the last look at the source tree if it is as new as wanted, else it looks again, for w
// and for all others. An error is that of the look, or that ctx has ended.
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
	if ctx.Err() != nil { // while it waited for git, or read
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
	next.wanted, whole, again = s.begin() // before the tree is read: what is wanted from here on is wanted anew
	s.watcher.Read(ctx, func(c notify.Changes) {
		// What somebody asks for comes before the events of what was done just before it.
		s.unread = s.unread.And(c).And(notify.Changes{All: whole})
		if s.unread.All {
			next.whole = next.n
		}
		if next.result, next.err = s.check(ctx, next); next.err == nil {
			next.revision = revision.Ask(ctx, s.all[0].Source.Path)
		}
	})
	next.all = s.all
	return next, again
}

// tellOthers has those look for whom a look found something else than the last one, and all of them where
// they have to agree.
func (s *source) tellOthers(by *watching, last, next *look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.publishers {
		if w != by && (next.agreement != nil || !next.sameFor(w.target, last)) {
			w.tell(news{string(notify.Change), next.wanted})
		}
	}
}

// sameFor reports whether two looks found the same for a target. last may be nil.
func (l *look) sameFor(target string, last *look) bool {
	if last == nil || l.read != last.read || l.result == nil || last.result == nil {
		return false
	}
	was, is := last.result.For(target), l.result.For(target)
	return was.Snapshot == is.Snapshot && reflect.DeepEqual(was.Diagnostics, is.Diagnostics)
}

// sayShared logs the findings that all targets have. Each target logs its own.
func (s *source) sayShared(r *check.Result, again bool) {
	if again || !reflect.DeepEqual(r.Shared, s.said) {
		s.said = r.Shared
		(&changeLog{log: s.options.Log, most: s.options.MaxFindings}).say(r.Shared)
	}
}

// check reads the settings and the source tree. Wrong settings stop only the publish, as a
// wrong resource does.
func (s *source) check(ctx context.Context, of *look) (*check.Result, error) {
	if err := s.reload(ctx, of); err != nil {
		return nil, err
	}
	if err := s.watcher.Also(s.extraFiles()...); err != nil {
		return nil, err
	}
	s.tree.KeepApart(s.outputs()...)
	// What reads aside may go on once ctx has ended: it touches nothing of s.
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

// reload reads the settings again. The publishers take them up with the look.
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

// outputs returns the output directories, those that are open as they were opened.
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

// isOpen takes up where an output directory is.
func (s *source) isOpen(given, out string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[given] = out
}

// ignored excludes the output directories, which change with each reconcile: a link in the tree may lead
// there, and a source that is one file may be in the same folder.
func (s *source) ignored(path string) bool {
	return slices.ContainsFunc(*s.outs.Load(), func(out string) bool { return fspath.Within(path, out) })
}

// ignoreOuts has the watcher ignore the output directories that there are now.
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

// foundNothing takes up that nothing has changed for a publisher at a look after a rescan. Where that is so for all,
// the next rescan may come later.
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

// compress has the tree held in less space. It reports whether it is: nobody waits for who looks.
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
