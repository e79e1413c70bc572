package envoy

import (
	"context"
	"slices"
	"sync"
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

// Look asks each Envoy once, side by side, what it makes of files that do not move.
func (f *Fleet) Look(ctx context.Context, subs []Subscription) []Look {
	roots := rootsOf(subs)
	looks := make([]Look, len(f.o.Admins))
	var wg sync.WaitGroup
	for i, admin := range f.o.Admins {
		wg.Go(func() { looks[i] = f.lookAt(ctx, admin, subs, roots) })
	}
	wg.Wait()
	return looks
}

func (f *Fleet) lookAt(ctx context.Context, a *Admin, subs []Subscription, roots []string) Look {
	reading, err := a.Read(ctx, roots)
	if err == nil {
		err = f.claim(ctx, a, reading.Boot)
	}
	if err != nil {
		return Look{URL: a.url, Err: err}
	}
	l := Look{URL: a.url, Reading: *reading}
	for _, s := range reading.led(subs, f.o.Dir) {
		l.States = append(l.States, s.stand(reading))
	}
	return l
}

// stand is what an Envoy makes of a file that does not move: Refused where it runs
// another version and has ever refused one.
func (s Subscription) stand(r *Reading) Status {
	status := Status{Subscription: s}
	for _, root := range r.roots(s) {
		c := r.Counters[root]
		if status.Root == "" || c.Version == s.Version {
			status.Root, status.Runs = root, c.Version
		}
		status.Refusals += c.Rejections + c.Failures
	}
	switch {
	case status.Root == "" && r.Matcher:
		status.State = Hidden
	case status.Root == "":
	case status.Runs == s.Version:
		status.State = Acked
	case status.Refusals > 0:
		status.State = Refused
	}
	return status
}
