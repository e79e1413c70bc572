package envoy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// comeBack is how long an AckWait waits for an Envoy that goes down: a supervisor restarts the Envoy, or a hot
// restart hands the admin interface over. After comeBack, the Envoy counts like an Envoy that was down before.
const comeBack = 5 * time.Second

// peer is one Envoy of an AckWait.
type peer struct {
	admin   *Admin
	base    *Observation // before the rename; nil if the Envoy gave no answer
	warming []string     // the clusters that were warming before the rename, sorted
	// recalled means that base is from memory (Fleet.recall).
	recalled bool

	last *Observation // the last observation since the rename; nil before the first
	// statuses has the status of each subscription that the Envoy can have, as of the last observation; nil without
	// an observation.
	statuses []Status
	err      error     // of the last question
	since    time.Time // when the Envoy went down after the rename; zero if it never did
	heard    bool      // observe was called: a question was asked after the rename
}

// observe stores an answer, which came at now, or its error.
func (p *peer) observe(now time.Time, a answer, subs []Subscription, dir string) {
	wasDown := p.down()
	p.err, p.heard = a.err, true
	if a.err == nil {
		p.last = a.observation
		p.updateStatuses(subs, dir)
	}
	if p.down() && !wasDown {
		p.since = now
	}
}

// updateStatuses sets statuses by the last observation, or without one by the observation before the rename.
func (p *peer) updateStatuses(subs []Subscription, dir string) {
	if now := cmp.Or(p.last, p.base); now != nil {
		p.statuses = statuses(p.base, now, now.subscribed(subs, dir))
	}
}

func (p *peer) down() bool { return isDown(p.err) }

func (p *peer) timedOut() bool { return isTimeout(p.err) }

// Unreachable reports whether an error means that the Envoy is down or does not answer in time. Both may end
// without help.
func Unreachable(err error) bool { return isDown(err) || isTimeout(err) }

func isDown(err error) bool {
	_, down := errors.AsType[*DownError](err)
	return down
}

func isTimeout(err error) bool {
	_, silent := errors.AsType[*TimeoutError](err)
	return silent
}

// counts reports whether the verdict depends on the Envoy. An Envoy that has answered before, and no longer does,
// counts as long as it hangs, because the new file may keep it busy, and until comeBack after it went down.
func (p *peer) counts(now time.Time) bool {
	switch {
	case p.err == nil:
		return true
	case p.base == nil && p.last == nil:
		return false
	case p.timedOut():
		return true
	case p.down():
		return now.Sub(p.since) < comeBack
	}
	return false
}

// restarted reports whether the last observation is of another process than the observation before the rename, or
// is the first.
func (p *peer) restarted() bool {
	return p.last != nil && (p.base == nil || p.base.Incarnation != p.last.Incarnation)
}

// state returns the state of all statuses together (stateOf).
func (p *peer) state() State { return stateOf(p.statuses) }

// outcome returns the Envoy's reaction to each file.
func (p *peer) outcome() EnvoyOutcome {
	return EnvoyOutcome{URL: p.admin.String(), Err: p.err, Restarted: p.restarted(), States: p.statuses}
}

// coldClusters returns the clusters that are warming now, and were not warming before the rename in the same process.
func (p *peer) coldClusters(ctx context.Context) ([]string, error) {
	names, err := p.admin.Warming(ctx)
	if err != nil || p.restarted() {
		return names, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, before := slices.BinarySearch(p.warming, name)
		return before
	}), nil
}
