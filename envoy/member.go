package envoy

import (
	"cmp"
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
	warming []string // the clusters that were warming then, sorted

	last *Reading // what it said last, since
	// made is what it has made of the files, judged once an answer.
	made  []Status
	err   error     // what became of the last question
	since time.Time // since when it is down, if it went down since
	heard bool      // it was asked since the rename
}

// observe notes an answer, or that there was none.
func (m *member) observe(now time.Time, a answer, subs []Subscription, dir string) {
	wasDown := m.down()
	m.err, m.heard = a.err, true
	if a.err == nil {
		m.last = a.reading
		m.judge(subs, dir)
	}
	if m.down() && !wasDown {
		m.since = now
	}
}

// judge makes of what it said last, or else before the rename, what it has made of the
// files.
func (m *member) judge(subs []Subscription, dir string) {
	if now := cmp.Or(m.last, m.base); now != nil {
		m.made = judge(m.base, now, now.led(subs, dir))
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

// state is what it has made of all files.
func (m *member) state() State { return stateOf(m.made) }

// outcome is what it has made of each file.
func (m *member) outcome() EnvoyOutcome {
	return EnvoyOutcome{URL: m.admin.String(), Err: m.err, Restarted: m.restarted(), States: m.made}
}

// coldClusters are those that warm now and did not before the rename.
func (m *member) coldClusters(ctx context.Context) ([]string, error) {
	names, err := m.admin.Warming(ctx)
	if err != nil || m.restarted() {
		return names, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, before := slices.BinarySearch(m.warming, name)
		return before
	}), nil
}
