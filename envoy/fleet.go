package envoy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// FleetOptions say which Envoys read the output directory.
type FleetOptions struct {
	Admins []*Admin
	Quorum Quorum // zero: all
	// Dir is the output directory as the Envoys see it. An Envoy that reads nothing
	// there is a *ForeignError. "" is not to look.
	Dir string
	// Logs are files that Envoys log to: where they say why they refuse something.
	Logs []*Log
	// AckTimeout is how long a round waits for acknowledgements. 0 is 15s.
	AckTimeout time.Duration
	// WarmTimeout is how long it then waits for clusters to be warm. 0 is 15s.
	WarmTimeout time.Duration
	// Log gets a warning when an Envoy stops answering, and a line when it answers
	// again. nil discards.
	Log *slog.Logger
}

// Fleet is the Envoys that read one output directory.
type Fleet struct {
	o FleetOptions

	mu   sync.Mutex
	lost map[*Admin]bool // those of which the log knows that they don't answer
	ours map[*Admin]Boot // the process that was seen to read Dir
}

// NewFleet asks nobody yet.
func NewFleet(o FleetOptions) *Fleet {
	o.AckTimeout = cmp.Or(o.AckTimeout, 15*time.Second)
	o.WarmTimeout = cmp.Or(o.WarmTimeout, 15*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Fleet{o: o, lost: make(map[*Admin]bool), ours: make(map[*Admin]Boot)}
}

// Begin asks all Envoys, side by side, where they stand, before the files of the
// subscriptions are renamed.
//
// One that is down or silent does not count, and is only noted. One whose answers
// can't be understood, or don't tell what is needed, is an error: *NotEnvoyError,
// *UnstableError, *HiddenError or *ForeignError. Nothing has moved then.
func (f *Fleet) Begin(ctx context.Context, subs []Subscription) (*Round, error) {
	r := &Round{fleet: f, subs: subs, roots: rootsOf(subs), begun: time.Now()}
	for _, log := range f.o.Logs {
		if err := log.Mark(); err != nil {
			return nil, err
		}
	}
	var wg sync.WaitGroup
	asking, cancel := context.WithTimeout(ctx, f.o.AckTimeout)
	defer cancel()
	for _, admin := range f.o.Admins {
		m := &member{admin: admin}
		r.members = append(r.members, m)
		wg.Go(func() { f.begin(asking, m, r) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var wrong []error
	for _, m := range r.members {
		if m.err != nil && !m.down() && !m.silent() {
			wrong = append(wrong, m.err)
			continue
		}
		f.note(m.admin, m.err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return r, nil
}

// begin asks one Envoy.
func (f *Fleet) begin(ctx context.Context, m *member, r *Round) {
	m.base, m.err = m.admin.Read(ctx, r.roots)
	if m.err == nil {
		m.err = f.claim(ctx, m.admin, m.base.Boot)
	}
	if m.err == nil && m.base.WarmingClusters > 0 {
		m.warming, m.err = m.admin.Warming(ctx)
	}
	if m.err != nil {
		m.base = nil
	}
	m.judge(r.subs, f.o.Dir)
}

// claim is a *ForeignError where a process reads no file of the directory. Each is
// asked once.
func (f *Fleet) claim(ctx context.Context, admin *Admin, boot Boot) error {
	f.mu.Lock()
	known := f.o.Dir == "" || f.ours[admin] == boot
	f.mu.Unlock()
	if known {
		return nil
	}
	if err := admin.readsBelow(ctx, f.o.Dir); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ours[admin] = boot
	return nil
}

// note logs when an Envoy stops answering and when it answers again.
func (f *Fleet) note(admin *Admin, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil && !f.lost[admin]:
		f.o.Log.Warn("no answer from Envoy", "admin", admin.String(), "error", err)
	case err == nil && f.lost[admin]:
		f.o.Log.Info("Envoy answers again", "admin", admin.String())
	}
	f.lost[admin] = err != nil
}

// rootsOf are the roots of all subscriptions, each once.
func rootsOf(subs []Subscription) []string {
	var roots []string
	for _, s := range subs {
		roots = append(roots, s.Roots...)
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}
