package envoy

import "slices"

// State is an Envoy's answer to a file.
type State int

const (
	// Pending: neither ACK nor refusal so far.
	Pending State = iota
	// Acked: it runs the file's version.
	Acked
	// Refused: it counted a rejection (a NACK) or a failure since Begin.
	Refused
	// StatsExcluded: it has no such statistics, and a stats_matcher that may exclude
	// them.
	StatsExcluded
)

// String returns the state in capitals.
func (s State) String() string {
	return [...]string{"PENDING", "ACKED", "REFUSED", "STATS_EXCLUDED"}[s]
}

// Status is an Envoy's answer to the file of one subscription.
type Status struct {
	Subscription
	State State
	// StatPrefix is that of its statistics, "" as long as Envoy has none.
	StatPrefix string
	// Runs is the version_text: the version that the Envoy runs.
	Runs string
	// Refusals counts the rejections and failures since Begin.
	Refusals uint64
}

// judge compares the observation of now with that from before the rename, base, which is
// nil where the Envoy did not answer then.
func judge(base, now *Observation, subs []Subscription) []Status {
	fresh := base == nil || base.Incarnation != now.Incarnation
	if fresh { // it read the files at its start: all that it counted counts
		base = &Observation{}
	}
	since := make(map[string]change, len(now.Counters))
	for prefix, c := range now.Counters {
		was := base.Counters[prefix]
		since[prefix] = change{c.since(was), c.Version != was.Version}
	}
	versions := now.versionsByPrefix(subs)
	list := make([]Status, 0, len(subs))
	for _, s := range subs {
		list = append(list, s.judge(now.statPrefixes(s), since, versions, fresh, now))
	}
	return list
}

// versionsByPrefix returns the versions of all subscriptions that share a stat prefix, sorted.
// Runtime layers share one, and so do names that Envoy makes equal.
func (r *Observation) versionsByPrefix(subs []Subscription) map[string][]string {
	versions := make(map[string][]string)
	for _, s := range subs {
		for _, prefix := range r.statPrefixes(s) {
			versions[prefix] = append(versions[prefix], s.Version)
		}
	}
	for _, list := range versions {
		slices.Sort(list)
	}
	return versions
}

func contains(versions []string, version string) bool {
	_, found := slices.BinarySearch(versions, version)
	return found
}

// since returns c minus base. A counter that is lower than before was removed with its
// owner, and began again from zero.
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

// change is what changed in the statistics of one prefix.
type change struct {
	Counters
	// turned: the version is another one.
	turned bool
}

// judge returns the status of s from the prefixes that the Envoy has. Each of them whose
// counters moved must show an ACK: it belongs to a subscription of its own. A fresh
// process may have refused the file that was there when it started, and have taken this
// one since. After a hot restart the counters are those of two processes, and only the
// version is that of the process that stays: what this one took the other may have
// refused, and a prefix without a version may be the other's.
func (s Subscription) judge(prefixes []string, since map[string]change, versions map[string][]string, fresh bool, now *Observation) Status {
	status := Status{Subscription: s}
	acked, waiting := false, false
	for _, prefix := range prefixes {
		c := since[prefix]
		took := contains(versions[prefix], c.Version) && (s.Unmoved || c.Successes >= uint64(len(versions[prefix])))
		acked = acked || took
		waiting = waiting || c.Attempts > 0 && !took && (now.Epoch == 0 || c.Version != "")
		fresh = fresh || took && c.turned && now.Epoch > 0
		if status.StatPrefix == "" || !took {
			status.StatPrefix, status.Runs = prefix, c.Version
		}
		status.Refusals += c.Rejections + c.Failures
	}
	switch {
	case acked && !waiting && (fresh || status.Refusals == 0):
		status.State = Acked
	case status.Refusals > 0:
		status.State = Refused
	case status.StatPrefix == "" && now.Matcher:
		status.State = StatsExcluded
	}
	return status
}
