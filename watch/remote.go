package watch

import (
	"cmp"
	"context"
	"os"
	"time"

	"xdspub/internal/crash"
	"xdspub/source/load"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/watch/part"
)

// watcher tells when to read the source again.
type watcher interface {
	Signals() <-chan notify.Reason
	Read(ctx context.Context, read func(notify.Changes))
	Also(files ...string) error
	FoundNothing()
	Run(ctx context.Context)
	Notices() control.Notices
}

// treeWatcher watches a source tree.
type treeWatcher struct{ *notify.Watcher }

// watchTree returns the watcher of a source tree.
func watchTree(ctx context.Context, path string, o notify.Options) (watcher, error) {
	w, err := notify.New(ctx, path, o)
	return treeWatcher{w}, err
}

// Notices returns how the Watcher learns of changes.
func (w treeWatcher) Notices() control.Notices { return control.Notices(w.Mode()) }

// stateChanged is the signal that only the state of a Remote has changed.
const stateChanged notify.Reason = connecting

// remoteWatcher watches a Remote, and files such as the settings file.
type remoteWatcher struct {
	remote   load.Remote
	maxStale time.Duration
	rescan   time.Duration
	files    *notify.Watcher // nil without files
	signals  chan notify.Reason
}

// newRemoteWatcher returns the watcher of a Remote. o.Files are the files.
func newRemoteWatcher(ctx context.Context, remote load.Remote, maxStale time.Duration, o notify.Options) (*remoteWatcher, error) {
	w := &remoteWatcher{remote: remote, maxStale: maxStale, rescan: cmp.Or(max(o.Rescan, 0), 30*time.Second), signals: make(chan notify.Reason, 1)}
	for _, file := range o.Files {
		if _, err := os.Stat(file); err != nil {
			continue // as without a settings file
		}
		var err error
		w.files, err = notify.New(ctx, file, o)
		return w, err
	}
	return w, nil
}

// Signals returns the channel of signals. Run closes the channel when it returns.
func (w *remoteWatcher) Signals() <-chan notify.Reason { return w.signals }

// Read reads all Contents.
func (w *remoteWatcher) Read(ctx context.Context, read func(notify.Changes)) {
	if w.files == nil {
		read(notify.Changes{All: true})
		return
	}
	w.files.Read(ctx, func(notify.Changes) { read(notify.Changes{All: true}) })
}

// Also replaces the files.
func (w *remoteWatcher) Also(files ...string) error {
	if w.files == nil {
		return nil
	}
	return w.files.Also(files...)
}

// FoundNothing does nothing: to look at a Remote again costs little.
func (w *remoteWatcher) FoundNothing() {}

// Notices returns no way of noticing: a Remote reports its changes.
func (w *remoteWatcher) Notices() control.Notices { return "" }

// Run sends signals until ctx ends.
func (w *remoteWatcher) Run(ctx context.Context) {
	defer close(w.signals)
	var files <-chan notify.Reason
	if w.files != nil {
		ended := make(chan struct{})
		crashed := make(chan *crash.Error, 1)
		go crash.Guard(func() {
			defer close(ended)
			w.files.Run(ctx)
		}, func(e *crash.Error) { crashed <- e })()
		defer func() {
			<-ended
			select {
			case e := <-crashed:
				panic(e)
			default:
			}
		}()
		files = w.files.Signals()
	}
	again := time.NewTicker(w.rescan)
	defer again.Stop()
	stale := time.NewTimer(time.Hour)
	defer stale.Stop()
	for {
		reason := notify.Change
		select {
		case <-ctx.Done():
			return
		case r, ok := <-files:
			if !ok {
				return
			}
			reason = r
		case <-w.remote.Changed():
			s := w.remote.State()
			if !s.Connected {
				reason = stateChanged
			}
			if since := s.StaleSince(); w.maxStale > 0 && !since.IsZero() {
				stale.Reset(max(0, time.Until(since.Add(w.maxStale))))
			}
		case <-stale.C:
			reason = stateChanged
		case <-again.C:
			reason = notify.Rescan
		}
		select {
		case w.signals <- reason:
		case <-ctx.Done():
			return
		}
	}
}

// upstream returns the state of the Remote; nil without one.
func (s *source) upstream() *control.Upstream {
	if s.options.Remote == nil {
		return nil
	}
	is := s.options.Remote.State()
	return &control.Upstream{
		Kind: s.options.Remote.Kind(), Connected: is.Connected, Server: is.Server, Since: is.Since.UTC().Round(0),
		Error: is.Error, StaleSince: is.StaleSince().UTC().Round(0), MaxStale: s.options.MaxStale.Seconds(), Rollout: is.Share,
	}
}

// judged tells the Remote what became of a look.
func (s *source) judged(l *look, o Outcome) {
	if s.options.Remote == nil || l.result == nil {
		return
	}
	j := load.Judgement{N: l.result.Read}
	switch o.Verdict {
	case Published:
		j.Accepted = true
	case Invalid, Held, RefusedByEnvoy:
		j.Findings = o.Findings
		if o.Part != nil && o.Part.Waits == "" {
			j.GoOn = part.TypesOf(o.Part.WhileRefused)
		}
	default: // nothing is decided
		return
	}
	s.options.Remote.Judged(j)
}
