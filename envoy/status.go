package envoy

import "slices"

// State is an Envoy's reaction to a file.
type State int

const (
	// Pending: neither ACK nor refusal so far.
	Pending State = iota
	// Acked: the Envoy runs the file's version.
	Acked
	// Refused: the Envoy counted a rejection (a NACK) or a failure since Begin.
	Refused
	// StatsExcluded: the Envoy lacks the statistics, and has a stats_matcher that may exclude them.
	StatsExcluded
)

// String returns the word of xdspub status for the state.
func (s State) String() string {
	return [...]string{"STALE", "SYNCED", "REJECTED", "STATS_EXCLUDED"}[s]
}

// Status is an Envoy's reaction to the file of one subscription.
type Status struct {
	Subscription
	State State
	// StatPrefix is the prefix of the subscription's statistics, "" as long as Envoy has none.
	StatPrefix string
	// Runs is the version_text of StatPrefix: the version that the Envoy runs.
	Runs string
	// Refusals counts the rejections and failures since Begin, or in a Probe since the start of the Envoy.
	Refusals uint64
}

// comparison compares an observation with the observation before the rename.
type comparison struct {
	now *Observation
	// fresh means that no process answered before, or another process.
	fresh  bool
	deltas map[string]delta // by stat prefix
	// versions has the versions of all subscriptions that share a stat prefix, sorted.
	versions map[string][]string
}

// compare compares now with base, the observation before the rename. base is nil if the Envoy did not answer.
func compare(base, now *Observation, subs []Subscription) comparison {
	c := comparison{now: now, deltas: make(map[string]delta, len(now.Counters)), versions: now.versionsByPrefix(subs)}
	if c.fresh = base == nil || base.Incarnation != now.Incarnation; c.fresh {
		base = &Observation{} // Envoy read the files at its start, so all counters count
	}
	for prefix, counters := range now.Counters {
		was := base.Counters[prefix]
		c.deltas[prefix] = delta{counters.since(was), counters.Version != was.Version}
	}
	return c
}

// statuses returns the status of each subscription.
func statuses(base, now *Observation, subs []Subscription) []Status {
	c := compare(base, now, subs)
	list := make([]Status, 0, len(subs))
	for _, s := range subs {
		list = append(list, c.status(s))
	}
	return list
}

// versionsByPrefix returns the versions of all subscriptions that share a stat prefix, sorted. Runtime layers
// share a prefix, and so do names that Envoy makes equal.
func (o *Observation) versionsByPrefix(subs []Subscription) map[string][]string {
	versions := make(map[string][]string)
	for _, s := range subs {
		for _, prefix := range o.statPrefixes(s) {
			versions[prefix] = append(versions[prefix], s.Version)
		}
	}
	for _, list := range versions {
		slices.Sort(list)
	}
	return versions
}

// contains reports whether sorted versions contain a version.
func contains(versions []string, version string) bool {
	_, found := slices.BinarySearch(versions, version)
	return found
}

// since returns c minus base. If a counter is lower than in base, Envoy has removed the statistics with their
// owner, and they began again from zero; since then returns c.
func (c Counters) since(base Counters) Counters {
	if c.Attempts < base.Attempts || c.Successes < base.Successes || c.Rejections < base.Rejections || c.Failures < base.Failures {
		return c
	}
	c.Attempts -= base.Attempts
	c.Successes -= base.Successes
	c.Rejections -= base.Rejections
	c.Failures -= base.Failures
	return c
}

// delta is the change of the statistics of one stat prefix.
type delta struct {
	Counters
	// turned means that the version differs from the version before.
	turned bool
}

// status returns the status of s by the stat prefixes that the Envoy has for s. Each prefix whose counters
// moved must show an ACK, because each prefix belongs to its own subscription in Envoy. A fresh process may
// have refused the file at its start, and have accepted the new file since. After a hot restart, the counters
// are sums over two processes, and only the version belongs to the process that stays: the other process may
// have refused a file that this process accepted, and a prefix without a version may be the other's.
func (c comparison) status(s Subscription) Status {
	status := Status{Subscription: s}
	acked, waiting, fresh := false, false, c.fresh
	for _, prefix := range c.now.statPrefixes(s) {
		d, versions := c.deltas[prefix], c.versions[prefix]
		took := contains(versions, d.Version) && (s.Unmoved || d.Successes >= uint64(len(versions)))
		acked = acked || took
		waiting = waiting || d.Attempts > 0 && !took && (c.now.Epoch == 0 || d.Version != "")
		fresh = fresh || took && d.turned && c.now.Epoch > 0
		if status.StatPrefix == "" || !took {
			status.StatPrefix, status.Runs = prefix, d.Version
		}
		status.Refusals += d.Rejections + d.Failures
	}
	switch {
	case acked && !waiting && (fresh || status.Refusals == 0):
		status.State = Acked
	case status.Refusals > 0:
		status.State = Refused
	case status.StatPrefix == "" && c.now.Matcher:
		status.State = StatsExcluded
	}
	return status
}
