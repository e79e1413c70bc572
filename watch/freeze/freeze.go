// Package freeze says when a change must not be published: in the windows of the settings, such as each weekend or a
// holiday. A window begins and ends by the clocks of a time zone:
//
//	zone, err := freeze.ZoneNamed("Europe/Berlin")
//	weekend := freeze.Window{From: friday, To: monday, Zone: zone, Reason: "weekend"}
//	err = weekend.Check()
//	state := freeze.Windows{weekend}.At(time.Now())
//
// A clock that is set forward skips times, and a clock that is set back shows times twice. A window begins when its
// clock first shows From or a later time. The window ends when its clock stops showing times before To.
package freeze

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	_ "time/tzdata" // a container from scratch has no time zones

	"xdspub/diag"
)

// The bounds of Windows.
const (
	Most    = 50   // windows
	MaxText = 1000 // bytes of a Window.Reason
)

// Window is a time, once or each week, during which changes wait.
type Window struct {
	From, To Moment
	Zone     *time.Location // by ZoneNamed
	Reason   string         // may be empty
}

// Windows are the windows of a source tree.
type Windows []Window

// Equal reports whether two lists are equal. Equal compares time zones by name.
func (ws Windows) Equal(others Windows) bool {
	return slices.EqualFunc(ws, others, func(a, b Window) bool {
		return a.From == b.From && a.To == b.To && a.Zone.String() == b.Zone.String() && a.Reason == b.Reason
	})
}

// State is a freeze in force.
type State struct {
	// Since is when the window began. Until is the end of the freeze, also if the next window begins at once. Both are
	// in the time zone Zone.
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Zone   string    `json:"zone"`
	Reason string    `json:"reason"`
}

// String returns text such as until 2026-11-30T08:00:00+01:00 (Europe/Berlin): weekend.
func (s State) String() string {
	text := fmt.Sprintf("until %s (%s)", s.Until.Format(time.RFC3339), diag.ClipLine(s.Zone, MaxText))
	if s.Reason != "" {
		text += ": " + diag.ClipLine(s.Reason, MaxText)
	}
	return text
}

// Equal reports whether two freezes are equal. Both may be nil.
func (s *State) Equal(other *State) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.Since.Equal(other.Since) && s.Until.Equal(other.Until) && s.Zone == other.Zone && s.Reason == other.Reason
}

// ZoneNamed returns an IANA time zone.
func ZoneNamed(name string) (*time.Location, error) {
	if name == "" || name == "Local" { // the meaning of both depends on the machine
		return nil, errors.New("name an IANA time zone such as Europe/Berlin, or UTC")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("name an IANA time zone such as Europe/Berlin: %q is none", diag.ClipLine(name, MaxText))
	}
	return zone, nil
}

// Check returns the fault of a window; nil for none.
func (w Window) Check() error {
	switch {
	case len(w.Reason) > MaxText || !utf8.ValidString(w.Reason):
		return fmt.Errorf("the reason is a text of %d bytes at most", MaxText)
	case w.From.Weekly && !w.To.Weekly:
		return fmt.Errorf("%s is a time of each week, and %s is a date: write two weekdays, or two dates", w.From, w.To)
	case !w.From.Weekly && w.To.Weekly:
		return fmt.Errorf("%s is a date, and %s is a time of each week: write two weekdays, or two dates", w.From, w.To)
	}
	length := time.Duration(w.minutes()) * time.Minute
	if !w.From.Weekly {
		length = w.To.wall().Sub(w.From.wall())
	}
	switch {
	case length == 0:
		return fmt.Errorf("the window from %s to %s is empty", w.From, w.To)
	case length < 0:
		return fmt.Errorf("the window ends at %s, before it begins at %s", w.To, w.From)
	}
	return nil
}

// OverlapError means that two windows of the same kind and time zone overlap, or that windows leave no time for a
// publish.
type OverlapError struct {
	Index int // of the window at fault
	text  string
}

func (e *OverlapError) Error() string { return e.text }

// Check returns an *OverlapError if two windows are at fault, although Window.Check accepts each of them. A holiday may
// include a weekend, and windows of several time zones may overlap: nothing is published in any of them.
func (ws Windows) Check() error {
	for i, w := range ws {
		for _, other := range ws[:i] {
			if w.Zone.String() == other.Zone.String() && w.overlaps(other) {
				return &OverlapError{i, fmt.Sprintf("the window from %s to %s overlaps the window from %s to %s: write one window, or correct a time", w.From, w.To, other.From, other.To)}
			}
		}
	}
	var weekly Windows
	minutes := 0
	for _, w := range ws {
		if w.From.Weekly {
			weekly, minutes = append(weekly, w), minutes+w.minutes()
		}
	}
	if minutes >= minutesOfWeek {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if s := weekly.At(begin); s != nil && s.Until.Sub(begin) >= longest {
			return &OverlapError{len(ws) - 1, "the windows leave no time of the week for a publish: shorten a window, or run xdspub pause"}
		}
	}
	return nil
}

// overlaps reports whether two weekly windows overlap, or two windows with dates. Both have the same time zone.
func (w Window) overlaps(other Window) bool {
	switch {
	case w.From.Weekly != other.From.Weekly:
		return false
	case !w.From.Weekly:
		return w.From.wall().Before(other.To.wall()) && other.From.wall().Before(w.To.wall())
	}
	begins := func(a, b Window) bool { // a begins in b
		return mod(a.From.minuteOfWeek()-b.From.minuteOfWeek()) < b.minutes()
	}
	return begins(w, other) || begins(other, w)
}

// longest is the length at which At stops to look for the end of a freeze.
const longest = 365 * day

// At returns the freeze at a time; nil for none. The windows must be free of faults.
func (ws Windows) At(t time.Time) *State {
	s := ws.oneAt(t)
	if s == nil {
		return nil
	}
	for next := s; next != nil && s.Until.Sub(t) < longest; next = ws.oneAt(s.Until) {
		s.Until, s.Zone = next.Until, next.Zone
	}
	s.Since = s.Since.In(s.Until.Location())
	return s
}

// oneAt returns the freeze of one window. If several windows include a time, the window is the one that ends last.
func (ws Windows) oneAt(t time.Time) (s *State) {
	for _, w := range ws {
		for _, p := range w.near(t.In(w.Zone)) {
			if p.has(t) && (s == nil || s.Until.Before(p.until)) {
				s = &State{Since: p.since, Until: p.until.In(w.Zone), Zone: w.Zone.String(), Reason: w.Reason}
			}
		}
	}
	return s
}

// period is a time from since, up to and without until.
type period struct{ since, until time.Time }

func (p period) has(t time.Time) bool { return !t.Before(p.since) && t.Before(p.until) }

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// near returns the periods of a window around a time t in the zone of the window.
func (w Window) near(t time.Time) (list []period) {
	if !w.From.Weekly {
		return append(list, periodOf(w.From.wall(), w.To.wall(), t.Location()))
	}
	year, month, date := t.Date()
	sunday := time.Date(year, month, date-int(t.Weekday()), 0, 0, 0, 0, time.UTC)
	for _, weeks := range []time.Duration{-2, -1, 0, 1} {
		from := sunday.Add(weeks*week + time.Duration(w.From.minuteOfWeek())*time.Minute)
		list = append(list, periodOf(from, from.Add(time.Duration(w.minutes())*time.Minute), t.Location()))
	}
	return list
}

// periodOf returns the period between two times that the clocks of a zone show. The arguments have these times in UTC.
func periodOf(from, to time.Time, zone *time.Location) period {
	since, _ := shows(from, zone)
	_, until := shows(to, zone)
	return period{since, until}
}

// shows returns when the clocks of a zone first show the time wall or a later time, and from when on they never show an
// earlier time. last is after first only if the clocks show wall and are then set back. wall has the shown time in UTC.
func shows(wall time.Time, zone *time.Location) (first, last time.Time) {
	// No clock differs from UTC by two days.
	for at := wall.Add(-2 * day).In(zone); ; {
		start, end := at.ZoneBounds()
		_, offset := at.Zone()
		reads := wall.Add(-time.Duration(offset) * time.Second)
		if first.IsZero() && (end.IsZero() || reads.Before(end)) {
			first = later(start, reads)
		}
		if start.IsZero() || reads.After(start) {
			last = reads
			if !end.IsZero() && end.Before(reads) {
				last = end
			}
		}
		if end.IsZero() || end.After(wall.Add(2*day)) {
			return first, last
		}
		at = end
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// minutes returns the length of a weekly window by the clock, in minutes. A window that ends on the weekday on which it
// begins does not last a week: the length is less than 0 if To is before From.
func (w Window) minutes() int {
	n := w.To.minuteOfWeek() - w.From.minuteOfWeek()
	if w.From.Weekday == w.To.Weekday {
		return n
	}
	return mod(n)
}

const minutesOfWeek = 7 * 24 * 60

// mod returns a number of minutes within a week.
func mod(minutes int) int { return (minutes%minutesOfWeek + minutesOfWeek) % minutesOfWeek }

// weekdays are the names of the days of the week.
func weekdays() (names []string) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		names = append(names, strings.ToLower(d.String()))
	}
	return names
}
