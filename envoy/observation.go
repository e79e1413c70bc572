package envoy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// Incarnation identifies a process of an Envoy by the time of its start, to the millisecond. Each restart and each
// hot restart makes a new Incarnation.
type Incarnation string

// time returns the time of the start, or the zero time if the Incarnation does not contain a time.
func (i Incarnation) time() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, string(i))
	return t
}

// Observation is the state of one Envoy at one time, according to its admin interface.
type Observation struct {
	asked       time.Time // before the questions about statistics
	Incarnation Incarnation
	State       string // LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING
	// DrainTime is how long listeners and filter chains drain.
	DrainTime time.Duration
	// Epoch is the number of hot restarts before this process. After a hot restart, the previous process runs
	// on for a while: it reads the files and drains, but has no admin interface. Envoy adds its counters to
	// the counters of this process. Envoy does not add texts and gauges.
	Epoch                                   int
	WarmingClusters, WarmingListeners       int
	DrainingListeners, DrainingFilterChains int
	// Paths are the files that the bootstrap names, sorted.
	Paths          []string
	bootstrapPaths bootstrapPaths // of Paths
	// Counters has the counters of the requested stat prefixes, without those that Envoy lacks.
	Counters map[string]Counters
	// expanded maps a stat prefix with Any to Envoy's stat prefixes.
	expanded map[string][]string
	// Matcher means that the bootstrap has a stats_matcher. It may exclude the statistics of a stat prefix that
	// Counters lacks.
	Matcher bool
}

// Counters are the statistics of one stat prefix. Version is its version_text.
type Counters struct {
	Attempts, Successes, Rejections, Failures uint64
	Version                                   string
}

// observationTries bounds the tries of Read to get all answers from one process. During a try, Envoy may restart,
// or hand its admin interface over.
const observationTries = 3

// Read observes one process of the Envoy: its state, and the Counters of prefixes. If a stats_matcher excludes
// statistics that Read needs, the error is a *StatsExcludedError. If the answers of each try come from several
// processes, the error is an *UnstableError.
func (a *Admin) Read(ctx context.Context, prefixes []string) (*Observation, error) {
	for range observationTries {
		o, whole, err := a.readOnce(ctx, prefixes)
		if err != nil {
			return nil, err
		}
		if whole {
			return o, nil
		}
	}
	return nil, &UnstableError{URL: a.url}
}

// readOnce is one try of Read. whole reports whether all answers came from one process.
func (a *Admin) readOnce(ctx context.Context, prefixes []string) (o *Observation, whole bool, err error) {
	s := a.session()
	defer s.close()
	p, err := s.process(ctx)
	if err != nil {
		return nil, false, err
	}
	o = &Observation{
		asked: time.Now(), Incarnation: p.incarnation, DrainTime: p.drainTime, Epoch: p.epoch, Matcher: p.matcher,
		Paths: p.paths, bootstrapPaths: newBootstrapPaths(ctx, p.paths),
	}
	if err := s.observe(ctx, o, prefixes); err != nil {
		return nil, false, err
	}
	// Ask twice: the first of the questions may come back to the first process by a round-robin balancer.
	for range 2 {
		if is, _, err := s.bootstrap(ctx); err != nil || is != o.Incarnation {
			return nil, false, err
		}
	}
	return o, true, nil
}

// observe asks for the facts that change while the process runs, and stores them in o.
func (s *session) observe(ctx context.Context, o *Observation, prefixes []string) (err error) {
	if o.State, err = s.state(ctx); err != nil {
		return err
	}
	stats, err := s.stats(ctx, !o.Matcher)
	if err != nil {
		return err
	}
	return o.take(s.url, stats, prefixes)
}

// state returns the word that /ready answers.
func (s *session) state(ctx context.Context) (string, error) {
	const path = "/ready"
	_, body, err := s.exchange(ctx, path, nil, maxDump) // 503 until it is LIVE
	if err != nil {
		return "", err
	}
	state := strings.TrimSpace(string(body))
	if !slices.Contains([]string{"LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"}, state) {
		return "", s.unexpected(path, sample(body))
	}
	return state, nil
}

// take stores statistics in o. If o.Matcher is set and a statistic is missing, the error is a *StatsExcludedError.
func (o *Observation) take(adminURL string, stats statistics, prefixes []string) error {
	var missing []string
	number := func(name string) uint64 {
		n, ok := stats.numbers[name]
		if !ok && o.Matcher {
			missing = append(missing, name)
		}
		return n
	}
	o.WarmingClusters = int(number(warmingClusters))
	o.WarmingListeners = int(number(warmingListeners))
	o.DrainingListeners = int(number(drainingListeners))
	o.DrainingFilterChains = int(number(drainingFilterChains))
	o.Counters, o.expanded = make(map[string]Counters, len(prefixes)), make(map[string][]string)
	has := expand(prefixes, stats)
	for _, prefix := range prefixes {
		for _, name := range has[prefix] {
			c := Counters{
				Attempts:   number(name + attempts),
				Successes:  number(name + successes),
				Rejections: number(name + rejections),
				Failures:   number(name + failures),
			}
			var ok bool
			if c.Version, ok = stats.texts[name+versionText]; !ok && o.Matcher {
				missing = append(missing, name+versionText)
			}
			o.Counters[name] = c
			if strings.Contains(prefix, Any) {
				o.expanded[prefix] = append(o.expanded[prefix], name)
			}
		}
	}
	if len(missing) > 0 {
		return &StatsExcludedError{URL: adminURL, Stats: missing}
	}
	return nil
}

// expand returns Envoy's stat prefixes for each asked prefix, which may contain Any. expand looks up the end of
// each name in a map of the texts after Any, so that it compares no name with all prefixes.
func expand(asked []string, stats statistics) map[string][]string {
	patterns := make(map[string][]string) // the prefixes with Any, by the text after Any
	lengths := make(map[int]bool)
	has := make(map[string][]string)
	for _, prefix := range asked {
		if _, after, pattern := strings.Cut(prefix, Any); pattern {
			patterns[after] = append(patterns[after], prefix)
			lengths[len(after)] = true
		}
	}
	prefixes := stats.prefixes()
	for _, prefix := range asked {
		if prefixes[prefix] {
			has[prefix] = []string{prefix}
		}
	}
	ends := slices.Sorted(maps.Keys(lengths))
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		for _, n := range ends {
			if n > len(prefix) {
				break
			}
			for _, pattern := range patterns[prefix[len(prefix)-n:]] {
				if before, _, _ := strings.Cut(pattern, Any); strings.HasPrefix(prefix[:len(prefix)-n], before) {
					has[pattern] = append(has[pattern], prefix)
				}
			}
		}
	}
	return has
}

// statPrefixes returns those stat prefixes of a subscription that the Envoy has, without Any.
func (o *Observation) statPrefixes(s Subscription) []string {
	var list []string
	for _, prefix := range s.StatPrefixes {
		if _, has := o.Counters[prefix]; has {
			list = append(list, prefix)
		}
		list = append(list, o.expanded[prefix]...)
	}
	return list
}

// subscribed returns the subscriptions that an Envoy with this bootstrap can have. dir is the output directory as
// Envoys see it.
func (o *Observation) subscribed(subs []Subscription, dir string) []Subscription {
	reads := make(map[string]bool)
	var list []Subscription
	for _, s := range subs {
		for _, file := range s.Entrypoints {
			if _, known := reads[file]; !known {
				reads[file] = o.bootstrapPaths.includes(dir, file)
			}
		}
		if len(s.Entrypoints) == 0 || slices.ContainsFunc(s.Entrypoints, func(file string) bool { return reads[file] }) {
			list = append(list, s)
		}
	}
	return list
}
