package envoy

import "slices"

// State is what an Envoy has made of a file.
type State int

const (
	// Pending is neither of the others, so far.
	Pending State = iota
	// Acked: it runs the file's version.
	Acked
	// Refused: it counted a rejection or a failure since the round began.
	Refused
	// Hidden is Pending with the reason: it has no such statistics, and a
	// stats_matcher that may leave them out.
	Hidden
)

// String is the state in capitals.
func (s State) String() string {
	return [...]string{"PENDING", "ACKED", "REFUSED", "HIDDEN"}[s]
}

// Status is what an Envoy has made of the file of one subscription.
type Status struct {
	Subscription
	State State
	// Root is where its statistics are, "" as long as Envoy has none.
	Root string
	// Runs is the version_text there.
	Runs string
	// Refusals are the rejections and failures since the round began.
	Refusals uint64
}

// judge holds what an Envoy says now against what it said before the rename. base
// is nil where it said nothing then.
func judge(base, now *Reading, subs []Subscription) []Status {
	fresh := base == nil || base.Boot != now.Boot
	if fresh { // it read the files at its start: all that it counted counts
		base = &Reading{}
	}
	since := make(map[string]change, len(now.Counters))
	for root, c := range now.Counters {
		was := base.Counters[root]
		since[root] = change{c.since(was), c.Version != was.Version}
	}
	sharing := now.sharing(subs)
	list := make([]Status, 0, len(subs))
	for _, s := range subs {
		list = append(list, s.judge(now.roots(s), since, sharing, fresh, now))
	}
	return list
}

// sharing are the versions of all subscriptions that share a root, by root and sorted:
// layers of the runtime have one in common, and so do names that Envoy makes one of.
func (r *Reading) sharing(subs []Subscription) map[string][]string {
	sharing := make(map[string][]string)
	for _, s := range subs {
		for _, root := range r.roots(s) {
			sharing[root] = append(sharing[root], s.Version)
		}
	}
	for _, versions := range sharing {
		slices.Sort(versions)
	}
	return sharing
}

func contains(versions []string, version string) bool {
	_, found := slices.BinarySearch(versions, version)
	return found
}

// since is c without what base has counted. A counter that is lower than it was
// went away with what it belonged to and came anew, from zero.
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

// change is what has become of the statistics of one root.
type change struct {
	Counters
	// turned tells that the version is another one.
	turned bool
}

// judge looks at each root that there is. One that moved must have taken the file:
// it reports for a subscription of its own. A fresh process may have refused what
// lay there when it started, and has taken the file all the same. After a hot restart
// counters are of two processes, and the version alone is of the one that stays: what
// that has taken, the other may have refused, and a root without a version may be the
// other's.
func (s Subscription) judge(roots []string, since map[string]change, sharing map[string][]string, fresh bool, now *Reading) Status {
	status := Status{Subscription: s}
	acked, waiting := false, false
	for _, root := range roots {
		c := since[root]
		took := contains(sharing[root], c.Version) && (s.Standing || c.Successes >= uint64(len(sharing[root])))
		acked = acked || took
		waiting = waiting || c.Attempts > 0 && !took && (now.Epoch == 0 || c.Version != "")
		fresh = fresh || took && c.turned && now.Epoch > 0
		if status.Root == "" || !took {
			status.Root, status.Runs = root, c.Version
		}
		status.Refusals += c.Rejections + c.Failures
	}
	switch {
	case acked && !waiting && (fresh || status.Refusals == 0):
		status.State = Acked
	case status.Refusals > 0:
		status.State = Refused
	case status.Root == "" && now.Matcher:
		status.State = Hidden
	}
	return status
}
