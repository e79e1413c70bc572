package envoy

import (
	"context"
	"errors"
	"slices"
	"time"
)

// comeBack is for how long an Envoy that goes down within a round is waited for:
// a supervisor starts it again, or a hot restart hands the admin interface over.
// Then it counts like one that was down before.
const comeBack = 5 * time.Second

// member is one Envoy in a round.
type member struct {
	admin   *Admin
	base    *Reading // before the rename; nil where it gave no answer
	warming []string // the clusters that were warming then

	last  *Reading  // what it said last, since
	err   error     // what became of the last question
	since time.Time // since when it is down, if it went down since
	heard bool      // it was asked since the rename
}

// observe notes an answer, or that there was none.
func (m *member) observe(now time.Time, reading *Reading, err error) {
	wasDown := m.down()
	m.err, m.heard = err, true
	if err == nil {
		m.last = reading
	}
	if m.down() && !wasDown {
		m.since = now
	}
}

func (m *member) down() bool { return isDown(m.err) }

func (m *member) silent() bool { return isSilent(m.err) }

func isDown(err error) bool {
	_, down := errors.AsType[*DownError](err)
	return down
}

func isSilent(err error) bool {
	_, silent := errors.AsType[*SilentError](err)
	return silent
}

// counts tells whether the verdict depends on it. One that hangs since the rename
// does: it may be at work on just that file.
func (m *member) counts(now time.Time) bool {
	switch {
	case m.err == nil:
		return true
	case m.base == nil && m.last == nil:
		return false
	case m.silent():
		return true
	case m.down():
		return now.Sub(m.since) < comeBack
	}
	return false
}

// restarted tells whether its process is another one than before the rename.
func (m *member) restarted() bool {
	return m.last != nil && (m.base == nil || m.base.Boot != m.last.Boot)
}

// outcome is what it has made of the files.
func (m *member) outcome(subs []Subscription, dir string) EnvoyOutcome {
	o := EnvoyOutcome{URL: m.admin.String(), Err: m.err, Restarted: m.restarted()}
	switch {
	case m.last != nil:
		o.States = judge(m.base, m.last, m.last.led(subs, dir))
	case m.base != nil:
		o.States = judge(m.base, m.base, m.base.led(subs, dir))
	}
	return o
}

// coldClusters are those that warm now and did not before the rename.
func (m *member) coldClusters(ctx context.Context) ([]string, error) {
	names, err := m.admin.Warming(ctx)
	if err != nil || m.restarted() {
		return names, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(m.warming, name) }), nil
}
