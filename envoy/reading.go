package envoy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// Boot is when an Envoy was started, to the millisecond: the identity of its
// process. Each restart has another, and each hot restart.
type Boot string

// time is the zero time for what is no Boot.
func (b Boot) time() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, string(b))
	return t
}

// Reading is one look at an Envoy.
type Reading struct {
	Boot  Boot
	State string // LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING
	// DrainTime is how long listeners and filter chains drain.
	DrainTime time.Duration
	// Epoch is how many hot restarts led to this process. Where there was one, the
	// process before it goes on beside it for a while: it reads the files and drains,
	// its admin interface is gone, and what it counts is added to what this one counts.
	// Texts and gauges are each one's own.
	Epoch                                   int
	WarmingClusters, WarmingListeners       int
	DrainingListeners, DrainingFilterChains int
	// Paths are the files that the bootstrap names, sorted.
	Paths []string
	reads reads // the same
	// Counters are those of each root that was asked for and that Envoy has.
	Counters map[string]Counters
	// expanded are the roots that a root with Any stands for.
	expanded map[string][]string
	// Matcher tells that the bootstrap has a stats_matcher: a root that is not in
	// Counters may be one that it hides.
	Matcher bool
}

// Counters are the statistics of one subscription.
type Counters struct {
	Attempts, Successes, Rejections, Failures uint64
	Version                                   string
}

// looks is how many are taken at an Envoy that is another process each time. Within
// one look it may have been restarted, or have handed its admin interface over.
const looks = 3

// Read takes one look, all of it at one process. Where a stats_matcher hides a part
// of what it needs, the error is a *HiddenError; where it is another process each time
// it is an *UnstableError.
func (a *Admin) Read(ctx context.Context, roots []string) (*Reading, error) {
	for range looks {
		r, whole, err := a.readOnce(ctx, roots)
		if err != nil {
			return nil, err
		}
		if whole {
			return r, nil
		}
	}
	return nil, &UnstableError{URL: a.url}
}

// readOnce takes a look. whole tells that all of it came from one process.
func (a *Admin) readOnce(ctx context.Context, roots []string) (r *Reading, whole bool, err error) {
	s := a.session()
	defer s.close()
	p, err := s.process(ctx)
	if err != nil {
		return nil, false, err
	}
	r = &Reading{Boot: p.boot, DrainTime: p.drainTime, Epoch: p.epoch, Matcher: p.matcher, Paths: p.paths, reads: lookUp(ctx, p.paths)}
	if err := s.look(ctx, r, roots); err != nil {
		return nil, false, err
	}
	// Asked once, a balancer of requests that goes round may be back where it began.
	for range 2 {
		if boot, _, err := s.bootstrap(ctx); err != nil || boot != r.Boot {
			return nil, false, err
		}
	}
	return r, true, nil
}

// look asks for all that changes.
func (s *session) look(ctx context.Context, r *Reading, roots []string) (err error) {
	if r.State, err = s.state(ctx); err != nil {
		return err
	}
	stats, err := s.stats(ctx, !r.Matcher)
	if err != nil {
		return err
	}
	return r.take(s.url, stats, roots)
}

// state asks /ready, whose answer is a word.
func (s *session) state(ctx context.Context) (string, error) {
	const path = "/ready"
	_, body, err := s.exchange(ctx, path, nil, maxDump) // 503 until it is LIVE
	if err != nil {
		return "", err
	}
	state := strings.TrimSpace(string(body))
	if !slices.Contains([]string{"LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"}, state) {
		return "", s.notEnvoy(path, sample(body))
	}
	return state, nil
}

// take fills r from the statistics.
func (r *Reading) take(adminURL string, stats statistics, roots []string) error {
	var missing []string
	number := func(name string) uint64 {
		n, ok := stats.numbers[name]
		if !ok && r.Matcher {
			missing = append(missing, name)
		}
		return n
	}
	r.WarmingClusters = int(number(warmingClusters))
	r.WarmingListeners = int(number(warmingListeners))
	r.DrainingListeners = int(number(drainingListeners))
	r.DrainingFilterChains = int(number(drainingFilterChains))
	r.Counters, r.expanded = make(map[string]Counters, len(roots)), make(map[string][]string)
	has := expand(roots, stats)
	for _, root := range roots {
		for _, name := range has[root] {
			c := Counters{
				Attempts:   number(name + attempts),
				Successes:  number(name + successes),
				Rejections: number(name + rejections),
				Failures:   number(name + failures),
			}
			var ok bool
			if c.Version, ok = stats.texts[name+versionText]; !ok && r.Matcher {
				missing = append(missing, name+versionText)
			}
			r.Counters[name] = c
			if strings.Contains(root, Any) {
				r.expanded[root] = append(r.expanded[root], name)
			}
		}
	}
	if len(missing) > 0 {
		return &HiddenError{URL: adminURL, Stats: missing}
	}
	return nil
}

// expand are the roots that Envoy has of those that were asked for, by what was asked
// for. It takes the names apart where an ending that was asked for may begin, and not at
// each of their dots, of which there may be a million.
func expand(asked []string, stats statistics) map[string][]string {
	patterns := make(map[string][]string) // what was asked for with Any, by what follows that
	lengths := make(map[int]bool)
	has := make(map[string][]string)
	for _, root := range asked {
		if _, after, pattern := strings.Cut(root, Any); pattern {
			patterns[after] = append(patterns[after], root)
			lengths[len(after)] = true
		}
	}
	roots := stats.roots()
	for _, root := range asked {
		if roots[root] {
			has[root] = []string{root}
		}
	}
	ends := slices.Sorted(maps.Keys(lengths))
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		for _, n := range ends {
			if n > len(root) {
				break
			}
			for _, pattern := range patterns[root[len(root)-n:]] {
				if before, _, _ := strings.Cut(pattern, Any); strings.HasPrefix(root[:len(root)-n], before) {
					has[pattern] = append(has[pattern], root)
				}
			}
		}
	}
	return has
}

// roots are those that Envoy has of a subscription.
func (r *Reading) roots(s Subscription) []string {
	var list []string
	for _, root := range s.Roots {
		if _, has := r.Counters[root]; has {
			list = append(list, root)
		}
		list = append(list, r.expanded[root]...)
	}
	return list
}

// led are the subscriptions that an Envoy with this bootstrap comes to have.
func (r *Reading) led(subs []Subscription, dir string) []Subscription {
	reads := make(map[string]bool)
	var list []Subscription
	for _, s := range subs {
		for _, via := range s.Via {
			if _, known := reads[via]; !known {
				reads[via] = r.reads.names(dir, via)
			}
		}
		if len(s.Via) == 0 || slices.ContainsFunc(s.Via, func(via string) bool { return reads[via] }) {
			list = append(list, s)
		}
	}
	return list
}
