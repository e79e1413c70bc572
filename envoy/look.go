package envoy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Look is what one Envoy runs at a moment.
type Look struct {
	URL string
	// Err is why it gives no answer; all else is zero then.
	Err error
	Reading
	// States has one for each subscription that it can have, in their order. The
	// files stand, so that Refusals are all since its start.
	States []Status
}

// Runs tells whether it runs the version of every file that it is subscribed to.
func (l Look) Runs() bool {
	return l.Err == nil && !slices.ContainsFunc(l.States, func(s Status) bool { return s.State != Acked && s.Root != "" })
}

// Away tells whether it is down or silent, which may end by itself.
func (l Look) Away() bool { return isDown(l.Err) || isSilent(l.Err) }

// Hides is a *HiddenError where the Envoy must have a subscription, since its bootstrap
// names the file or it runs a file that asks for it, and does not show its statistics.
func (l Look) Hides() error {
	runs := make(map[string]bool)
	for _, s := range l.States {
		runs[s.File] = runs[s.File] || s.State == Acked
	}
	var stats []string
	for _, s := range l.States {
		if s.State == Hidden && slices.ContainsFunc(s.Via, func(via string) bool { return via == s.File || runs[via] }) {
			for _, root := range s.Roots {
				stats = append(stats, strings.ReplaceAll(root, Any, "*"))
			}
		}
	}
	if len(stats) == 0 {
		return nil
	}
	return &HiddenError{URL: l.URL, Stats: stats}
}

// CloseLook is a Look with the names of what is not as it should be.
type CloseLook struct {
	Look
	// Refused are the listeners that were refused when Envoy read their file last.
	Refused []Refusal
	// Warming are the clusters that warm, sorted.
	Warming []string
}

// Look asks each Envoy once, side by side, what it makes of files that do not move.
//
// An Envoy that answers has read all files that were renamed before it was asked:
// it learns of a rename and takes the first connection on one thread, and the
// statistics are on a later one.
func (f *Fleet) Look(ctx context.Context, subs []Subscription) []Look {
	ctx, cancel := context.WithTimeout(ctx, f.o.AckTimeout)
	defer cancel()
	return sideBySide(f.o.Admins, func(a *Admin) Look { return f.lookAt(ctx, a, subs) })
}

// LookClosely is Look with questions that cost Envoy more.
func (f *Fleet) LookClosely(ctx context.Context, subs []Subscription) []CloseLook {
	ctx, cancel := context.WithTimeout(ctx, f.o.AckTimeout)
	defer cancel()
	return sideBySide(f.o.Admins, func(a *Admin) CloseLook { return f.lookCloselyAt(ctx, a, subs) })
}

func sideBySide[T any](admins []*Admin, look func(*Admin) T) []T {
	looks := make([]T, len(admins))
	var wg sync.WaitGroup
	for i, admin := range admins {
		wg.Go(func() { looks[i] = look(admin) })
	}
	wg.Wait()
	return looks
}

func (f *Fleet) lookAt(ctx context.Context, a *Admin, subs []Subscription) Look {
	reading, err := a.Read(ctx, rootsOf(subs))
	if err == nil {
		err = f.claim(ctx, a, reading.Boot)
	}
	if err != nil {
		return Look{URL: a.url, Err: err}
	}
	l := Look{URL: a.url, Reading: *reading}
	led := reading.led(subs, f.o.Dir)
	sharing := reading.sharing(led)
	for _, s := range led {
		l.States = append(l.States, s.stand(reading, sharing))
	}
	return l
}

func (f *Fleet) lookCloselyAt(ctx context.Context, a *Admin, subs []Subscription) CloseLook {
	l := CloseLook{Look: f.lookAt(ctx, a, subs)}
	if l.Err == nil && slices.ContainsFunc(l.States, func(s Status) bool { return s.API == "LDS" }) {
		l.Refused, l.Err = a.Refusals(ctx, time.Time{})
	}
	if l.Err == nil && l.WarmingClusters > 0 {
		l.Warming, l.Err = a.Warming(ctx)
	}
	if l.Err != nil {
		return CloseLook{Look: Look{URL: l.URL, Err: l.Err}}
	}
	return l
}

// stand is what an Envoy makes of a file that does not move: Refused where it runs
// another version and has ever refused one.
func (s Subscription) stand(r *Reading, sharing map[string][]string) Status {
	status := Status{Subscription: s}
	acked := false
	for _, root := range r.roots(s) {
		c := r.Counters[root]
		runs := c.Version != "" && contains(sharing[root], c.Version)
		if status.Root == "" || runs {
			status.Root, status.Runs = root, c.Version
		}
		acked = acked || runs
		status.Refusals += c.Rejections + c.Failures
	}
	switch {
	case status.Root == "" && r.Matcher:
		status.State = Hidden
	case status.Root == "":
	case acked:
		status.State = Acked
	case status.Refusals > 0:
		status.State = Refused
	}
	return status
}
