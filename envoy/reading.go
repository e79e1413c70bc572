package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Boot is when an Envoy was started, to the millisecond: the identity of its
// process. Each restart has another, and each hot restart.
type Boot string

// Reading is one look at an Envoy.
type Reading struct {
	Boot  Boot
	State string // LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING
	// DrainTime is how long listeners and filter chains drain.
	DrainTime                               time.Duration
	WarmingClusters, WarmingListeners       int
	DrainingListeners, DrainingFilterChains int
	// Paths are the files that the bootstrap names, sorted.
	Paths []string
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

// statsFilter is the names of what is read, and nothing else: all that an Envoy of
// 10,000 clusters has are 55 MB. It holds no names of resources. Asking for those
// that matter takes Envoy as long, and there may be more of them than a URL holds.
const statsFilter = `\.(update_attempt|update_success|update_rejected|update_failure|version_text)$` +
	`|^cluster_manager\.warming_clusters$|^listener_manager\.total_(listeners_warming|listeners_draining|filter_chains_draining)$`

// neededStats says the same in words.
const neededStats = "the suffixes update_attempt, update_success, update_rejected, update_failure and version_text, " +
	warmingClusters + ", " + warmingListeners + ", " + drainingListeners + " and " + drainingFilterChains

const (
	attempts    = ".update_attempt"
	successes   = ".update_success"
	rejections  = ".update_rejected"
	failures    = ".update_failure"
	versionText = ".version_text"

	warmingClusters      = "cluster_manager.warming_clusters"
	warmingListeners     = "listener_manager.total_listeners_warming"
	drainingListeners    = "listener_manager.total_listeners_draining"
	drainingFilterChains = "listener_manager.total_filter_chains_draining"
)

// Read takes one look, all of it at one process. Where a stats_matcher hides a part
// of what it needs, the error is a *HiddenError.
func (a *Admin) Read(ctx context.Context, roots []string) (*Reading, error) {
	p, err := a.process(ctx)
	for {
		if err != nil {
			return nil, err
		}
		r := &Reading{Boot: p.boot, DrainTime: p.drainTime, Matcher: p.matcher, Paths: p.paths}
		if err := a.look(ctx, r, roots); err != nil {
			return nil, err
		}
		if p, err = a.process(ctx); err == nil && p.boot == r.Boot {
			return r, nil
		}
	}
}

// look asks for all that changes.
func (a *Admin) look(ctx context.Context, r *Reading, roots []string) (err error) {
	if r.State, err = a.state(ctx); err != nil {
		return err
	}
	stats, err := a.stats(ctx, !r.Matcher)
	if err != nil {
		return err
	}
	return r.take(a.url, stats, roots)
}

// state asks /ready, whose answer is a word.
func (a *Admin) state(ctx context.Context) (string, error) {
	const path = "/ready"
	_, body, err := a.exchange(ctx, path, nil) // 503 until it is LIVE
	if err != nil {
		return "", err
	}
	state := strings.TrimSpace(string(body))
	if !slices.Contains([]string{"LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"}, state) {
		return "", a.notEnvoy(path, sample(body))
	}
	return state, nil
}

// stats are the statistics by name. With usedOnly Envoy leaves out what it never
// touched, which is what is zero, and takes a quarter of the time.
func (a *Admin) stats(ctx context.Context, usedOnly bool) (map[string]any, error) {
	const path = "/stats"
	query := url.Values{"format": {"json"}, "filter": {statsFilter}}
	if usedOnly {
		query.Set("usedonly", "")
	}
	body, err := a.get(ctx, path, query)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Stats []struct {
			Name  string
			Value any
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil || answer.Stats == nil {
		return nil, a.notEnvoy(path, sample(body))
	}
	stats := make(map[string]any, len(answer.Stats))
	for _, s := range answer.Stats {
		stats[s.Name] = s.Value
	}
	return stats, nil
}

// take fills r from the statistics.
func (r *Reading) take(adminURL string, stats map[string]any, roots []string) error {
	var missing []string
	number := func(name string) uint64 {
		value, ok := stats[name].(json.Number)
		if !ok && r.Matcher {
			missing = append(missing, name)
		}
		n, _ := strconv.ParseUint(string(value), 10, 64)
		return n
	}
	r.WarmingClusters = int(number(warmingClusters))
	r.WarmingListeners = int(number(warmingListeners))
	r.DrainingListeners = int(number(drainingListeners))
	r.DrainingFilterChains = int(number(drainingFilterChains))
	r.Counters, r.expanded = make(map[string]Counters, len(roots)), make(map[string][]string)
	ends := endings(stats)
	for _, root := range roots {
		for _, name := range expand(root, ends) {
			c := Counters{
				Attempts:   number(name + attempts),
				Successes:  number(name + successes),
				Rejections: number(name + rejections),
				Failures:   number(name + failures),
			}
			version, ok := stats[name+versionText].(string)
			if !ok && r.Matcher {
				missing = append(missing, name+versionText)
			}
			c.Version = version
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

// endings are the roots of the statistics by each of their endings that begins
// with a dot, and as a whole, sorted.
func endings(stats map[string]any) map[string][]string {
	ends := make(map[string][]string)
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		for _, suffix := range []string{attempts, successes, rejections, failures, versionText} {
			root, ok := strings.CutSuffix(name, suffix)
			if !ok || seen[root] {
				continue
			}
			seen[root] = true
			ends[root] = append(ends[root], root)
			for i, c := range root {
				if c == '.' {
					ends[root[i:]] = append(ends[root[i:]], root)
				}
			}
		}
	}
	return ends
}

// expand are the roots that Envoy has of one that was asked for.
func expand(root string, ends map[string][]string) []string {
	before, after, pattern := strings.Cut(root, Any)
	if !pattern {
		return slices.DeleteFunc(slices.Clone(ends[root]), func(name string) bool { return name != root })
	}
	return slices.DeleteFunc(slices.Clone(ends[after]), func(name string) bool { return !strings.HasPrefix(name, before) })
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
				reads[via] = names(r.Paths, dir, via)
			}
		}
		if len(s.Via) == 0 || slices.ContainsFunc(s.Via, func(via string) bool { return reads[via] }) {
			list = append(list, s)
		}
	}
	return list
}
