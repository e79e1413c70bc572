package envoy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// comeBack is how long an AckWait waits for an Envoy that goes down: a supervisor starts it
// again, or a hot restart hands its admin interface over. After that it counts like one
// that was down before.
const comeBack = 5 * time.Second

// peer is one Envoy of an AckWait.
type peer struct {
	admin   *Admin
	base    *Observation // before the rename; nil where it gave no answer
	warming []string     // the clusters that were warming then, sorted

	last *Observation // the last one since the rename
	// statuses are those of the files, updated by each answer.
	statuses []Status
	err      error     // of the last question
	since    time.Time // since when it is down, if it went down since
	heard    bool      // asked since the rename
}

// observe stores an answer, or its error.
func (m *peer) observe(now time.Time, a answer, subs []Subscription, dir string) {
	wasDown := m.down()
	m.err, m.heard = a.err, true
	if a.err == nil {
		m.last = a.observation
		m.updateStatuses(subs, dir)
	}
	if m.down() && !wasDown {
		m.since = now
	}
}

// updateStatuses updates the statuses from the last observation, or else from the one before the
// rename.
func (m *peer) updateStatuses(subs []Subscription, dir string) {
	if now := cmp.Or(m.last, m.base); now != nil {
		m.statuses = statuses(m.base, now, now.subscribed(subs, dir))
	}
}

func (m *peer) down() bool { return isDown(m.err) }

func (m *peer) timedOut() bool { return isTimeout(m.err) }

func isDown(err error) bool {
	_, down := errors.AsType[*DownError](err)
	return down
}

func isTimeout(err error) bool {
	_, silent := errors.AsType[*TimeoutError](err)
	return silent
}

// counts reports whether the verdict depends on the Envoy. It does on one that hangs since
// the rename: it may be busy with that very file.
func (m *peer) counts(now time.Time) bool {
	switch {
	case m.err == nil:
		return true
	case m.base == nil && m.last == nil:
		return false
	case m.timedOut():
		return true
	case m.down():
		return now.Sub(m.since) < comeBack
	}
	return false
}

// restarted reports whether its process is another one than before the rename.
func (m *peer) restarted() bool {
	return m.last != nil && (m.base == nil || m.base.Incarnation != m.last.Incarnation)
}

// state returns the state of all files together.
func (m *peer) state() State { return stateOf(m.statuses) }

// outcome returns what the Envoy did with each file.
func (m *peer) outcome() EnvoyOutcome {
	return EnvoyOutcome{URL: m.admin.String(), Err: m.err, Restarted: m.restarted(), States: m.statuses}
}

// coldClusters returns the clusters that warm now and did not before the rename.
func (m *peer) coldClusters(ctx context.Context) ([]string, error) {
	names, err := m.admin.Warming(ctx)
	if err != nil || m.restarted() {
		return names, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, before := slices.BinarySearch(m.warming, name)
		return before
	}), nil
}
