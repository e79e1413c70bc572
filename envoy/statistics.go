package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"xdspub/diag"
)

// statsFilter matches the names of the needed statistics only: all statistics of an Envoy with 10,000 clusters
// are 55 MB. statsFilter holds no names of resources. A filter with names would cost Envoy as much time, and
// might not fit into a URL.
const statsFilter = `\.(update_attempt|update_success|update_rejected|update_failure|version_text)$` +
	`|^cluster_manager\.warming_clusters$|^listener_manager\.total_(listeners_warming|listeners_draining|filter_chains_draining)$`

// neededStats says statsFilter in words, for errors.
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

// suffixes are the suffixes of a subscription's statistics.
var suffixes = []string{attempts, successes, rejections, failures, versionText}

const (
	// mostStats bounds the statistics of an answer. 200,000 subscriptions have as many.
	mostStats = 1_000_000
	// maxStatName exceeds the name of any statistic.
	maxStatName = 64 << 10
)

// statistics are statistics of an Envoy, by name.
type statistics struct {
	numbers map[string]uint64
	texts   map[string]string
}

// stats asks for the statistics of statsFilter. With usedOnly, Envoy leaves out unused statistics, which are zero,
// and takes a quarter of the time.
func (s *session) stats(ctx context.Context, usedOnly bool) (statistics, error) {
	query := url.Values{"filter": {statsFilter}}
	if usedOnly {
		query.Set("usedonly", "")
	}
	return s.askStats(ctx, query)
}

// askStats asks for the statistics that a query describes.
func (s *session) askStats(ctx context.Context, query url.Values) (statistics, error) {
	const path = "/stats"
	query.Set("format", "json")
	body, err := s.get(ctx, path, query, maxStats)
	if err != nil {
		return statistics{}, err
	}
	stats, err := parseStats(ctx, body)
	_, excess := errors.AsType[*excessError](err)
	switch {
	case ctx.Err() != nil:
		err = s.failed(ctx, path, ctx.Err())
	case excess:
		err = s.unexpected(path, err.Error())
	case err != nil:
		err = s.unexpected(path, sample(body))
	}
	return stats, err
}

// excessError says which limit an answer exceeds.
type excessError struct{ of string }

func (e *excessError) Error() string { return e.of }

// parseStats reads {"stats": [{"name": …, "value": …}, …]}. It decodes one statistic at a time, which takes less
// memory than the whole.
func parseStats(ctx context.Context, body []byte) (statistics, error) {
	stats := statistics{numbers: make(map[string]uint64), texts: make(map[string]string)}
	decoder := json.NewDecoder(bytes.NewReader(body))
	for _, want := range []json.Token{json.Delim('{'), "stats", json.Delim('[')} {
		if token, err := decoder.Token(); err != nil || token != want {
			return stats, errors.New("no statistics")
		}
	}
	for n := 0; decoder.More(); n++ {
		var stat struct {
			Name  string
			Value json.RawMessage
		}
		switch err := decoder.Decode(&stat); {
		case err != nil:
			return stats, err
		case n == mostStats:
			return stats, &excessError{fmt.Sprintf("more than %d statistics", mostStats)}
		case len(stat.Name) > maxStatName:
			return stats, &excessError{fmt.Sprintf("a statistic with a name of %d bytes, the limit is %d", len(stat.Name), maxStatName)}
		case n%1024 == 0 && ctx.Err() != nil:
			return stats, ctx.Err()
		}
		stats.add(stat.Name, stat.Value)
	}
	for _, want := range []json.Token{json.Delim(']'), json.Delim('}')} {
		if token, err := decoder.Token(); err != nil || token != want {
			return stats, errors.New("the statistics are cut off")
		}
	}
	return stats, nil
}

// add records a value. A value that is neither text nor number counts as absent.
func (s statistics) add(name string, value []byte) {
	if number, err := strconv.ParseUint(string(value), 10, 64); err == nil {
		s.numbers[name] = number
		return
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		s.texts[name] = diag.Clip(text, diag.MaxWord)
	}
}

// prefixes returns the stat prefixes of all subscriptions: the names with one of suffixes, without the suffix.
func (s statistics) prefixes() map[string]bool {
	prefixes := make(map[string]bool)
	add := func(name string) {
		for _, suffix := range suffixes {
			if prefix, ok := strings.CutSuffix(name, suffix); ok {
				prefixes[prefix] = true
			}
		}
	}
	for name := range s.numbers {
		add(name)
	}
	for name := range s.texts {
		add(name)
	}
	return prefixes
}
