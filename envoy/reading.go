package envoy

import (
	"bytes"
	"context"
	"encoding/json"
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
	// Counters are those of each root that was asked for and that Envoy has.
	Counters map[string]Counters
	// Matcher tells that the bootstrap has a stats_matcher: a root that is not in
	// Counters may be one that it hides.
	Matcher bool
	// Took is how long Envoy took for the statistics, which is for how long they
	// kept its main thread busy.
	Took time.Duration
}

// Counters are the statistics of one subscription.
type Counters struct {
	Attempts, Successes, Rejections, Failures uint64
	Version                                   string
}

// The names of what is read, and nothing else: all that an Envoy of 10,000
// clusters has are 55 MB.
const (
	updateStats   = `\.(update_attempt|update_success|update_rejected|update_failure|version_text)$`
	gaugeStats    = `^cluster_manager\.warming_clusters$|^listener_manager\.total_(listeners_warming|listeners_draining|filter_chains_draining)$`
	neededPattern = "the suffixes update_attempt, update_success, update_rejected, update_failure and version_text, and cluster_manager.warming_clusters, listener_manager.total_listeners_warming, listener_manager.total_listeners_draining and listener_manager.total_filter_chains_draining"
)

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

// Read takes one look. Where a stats_matcher hides a part of what it needs, the
// error is a *HiddenError.
//
// The process is asked for who it is before it is asked for its counters: when it
// is replaced in between, the counters are at most those of a later one.
func (a *Admin) Read(ctx context.Context, roots []string) (*Reading, error) {
	p, err := a.process(ctx)
	if err != nil {
		return nil, err
	}
	r := &Reading{Boot: p.boot, DrainTime: p.drainTime, Matcher: p.matcher}
	if r.State, err = a.state(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	stats, err := a.stats(ctx, !p.matcher)
	if err != nil {
		return nil, err
	}
	r.Took = time.Since(start)
	if err := r.take(a.url, stats, roots); err != nil {
		return nil, err
	}
	return r, nil
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
	query := url.Values{"format": {"json"}, "filter": {updateStats + "|" + gaugeStats}}
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
	r.Counters = make(map[string]Counters, len(roots))
	for _, root := range roots {
		has := false
		for _, suffix := range []string{attempts, successes, rejections, failures, versionText} {
			_, ok := stats[root+suffix]
			has = has || ok
		}
		if !has {
			continue
		}
		c := Counters{
			Attempts:   number(root + attempts),
			Successes:  number(root + successes),
			Rejections: number(root + rejections),
			Failures:   number(root + failures),
		}
		version, ok := stats[root+versionText].(string)
		if !ok && r.Matcher {
			missing = append(missing, root+versionText)
		}
		c.Version = version
		r.Counters[root] = c
	}
	if len(missing) > 0 {
		return &HiddenError{URL: adminURL, Stats: missing}
	}
	return nil
}
