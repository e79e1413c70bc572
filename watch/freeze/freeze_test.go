package freeze

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// windowOf returns the window of four texts.
func windowOf(t *testing.T, from, to, zone, reason string) Window {
	t.Helper()
	f, err1 := ParseMoment(from)
	until, err2 := ParseMoment(to)
	in, err3 := ZoneNamed(zone)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return Window{From: f, To: until, Zone: in, Reason: reason}
}

// TestParseMoment checks which texts are moments.
func TestParseMoment(t *testing.T) {
	for text, want := range map[string]string{
		"Friday 17:00": "Friday 17:00", "fri 8:00": "Friday 8:00", "SUNDAY  24:00": "Sunday 24:00", "Mon 08:05": "Monday 8:05",
		"2026-12-24 17:00": "2026-12-24 17:00", "2028-02-29 0:00": "2028-02-29 0:00",
		"": "write a weekday", "Friday": "write a weekday", "17:00": "write a weekday", "Frieday 17:00": "write a weekday", "Friday 17": "write a weekday",
		"Friday 25:00": "there is no time 25:00", "Friday 17:60": "there is no time 17:60", "Friday 24:01": "there is no time 24:01",
		"2026-02-29 17:00": "there is no date 2026-02-29", "2026-13-01 1:00": "there is no date", "2026-1-1 1:00": "write a weekday",
		"Friday 17:00 ": "write a weekday", "Friday\n17:00": "write a weekday", "Friday 17:00:00": "write a weekday",
	} {
		m, err := ParseMoment(text)
		is := m.String()
		if err != nil {
			is = err.Error()
		}
		if !strings.HasPrefix(is, want) {
			t.Errorf("%q: %s, want %s", text, is, want)
		}
		if again, againErr := ParseMoment(m.String()); err == nil && (againErr != nil || again != m) {
			t.Errorf("%q: its text %q is %v, %v", text, m, again, againErr)
		}
	}
}

// TestZoneNamed checks that a zone has one meaning on all machines.
func TestZoneNamed(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"} {
		if zone, err := ZoneNamed(name); err != nil || zone.String() != name {
			t.Errorf("%s: %v, %v", name, zone, err)
		}
	}
	for _, name := range []string{"", "Local", "Europe/Berlinn", "../../etc/passwd", "/etc/localtime", "Europe", "\\x", strings.Repeat("x", 1<<20)} {
		if zone, err := ZoneNamed(name); err == nil || !strings.Contains(err.Error(), "IANA") || len(err.Error()) > 2*MaxText {
			t.Errorf("%.30q: %v, %v", name, zone, err)
		}
	}
}

// TestCheck checks which windows are refused.
func TestCheck(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"Friday 17:00", "Monday 8:00", ""},
		{"Sunday 0:00", "Sunday 24:00", ""},
		{"Saturday 24:00", "Sunday 8:00", ""},
		{"Sunday 8:00", "Saturday 24:00", ""},
		{"2026-12-24 0:00", "2026-12-24 24:00", ""},
		{"Friday 17:00", "Friday 17:00", "the window from Friday 17:00 to Friday 17:00 is empty"},
		{"Friday 24:00", "Saturday 0:00", "is empty"},
		{"Saturday 24:00", "Sunday 0:00", "is empty"},
		{"2026-12-24 24:00", "2026-12-25 0:00", "is empty"},
		{"Friday 17:00", "Friday 8:00", "the window ends at Friday 8:00, before it begins at Friday 17:00"},
		{"2026-12-24 17:00", "2026-12-23 17:00", "the window ends at 2026-12-23 17:00, before it begins"},
		{"Friday 17:00", "2026-12-23 17:00", "Friday 17:00 is a time of each week, and 2026-12-23 17:00 is a date"},
		{"2026-12-23 17:00", "Friday 17:00", "2026-12-23 17:00 is a date, and Friday 17:00 is a time of each week"},
	} {
		got := ""
		if err := windowOf(t, test.from, test.to, "UTC", "").Check(); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) || got != "" && test.want == "" {
			t.Errorf("%s to %s: %q, want %q", test.from, test.to, got, test.want)
		}
	}
	w := windowOf(t, "Friday 17:00", "Monday 8:00", "UTC", strings.Repeat("x", MaxText+1))
	if w.Check() == nil {
		t.Error("a long reason is accepted")
	}
}

// TestOverlaps checks which lists of windows are refused.
func TestOverlaps(t *testing.T) {
	of := func(texts ...string) (ws Windows) {
		for i := 0; i < len(texts); i += 3 {
			ws = append(ws, windowOf(t, texts[i], texts[i+1], texts[i+2], ""))
		}
		return ws
	}
	for _, test := range []struct {
		windows Windows
		want    string
	}{
		{of("Friday 17:00", "Monday 8:00", "Europe/Berlin", "Friday 17:00", "Monday 8:00", "America/New_York"), ""},
		{of("Friday 17:00", "Monday 8:00", "UTC", "2026-12-24 0:00", "2027-01-02 0:00", "UTC"), ""},
		{of("Friday 17:00", "Monday 8:00", "UTC", "Monday 8:00", "Monday 9:00", "UTC", "Friday 16:00", "Friday 17:00", "UTC"), ""},
		{of("2026-12-24 0:00", "2026-12-26 0:00", "UTC", "2026-12-26 0:00", "2026-12-27 0:00", "UTC"), ""},
		{of("Friday 17:00", "Monday 8:00", "UTC", "Sunday 8:00", "Sunday 9:00", "UTC"), "the window from Sunday 8:00 to Sunday 9:00 overlaps the window from Friday 17:00 to Monday 8:00"},
		{of("Sunday 8:00", "Sunday 9:00", "UTC", "Friday 17:00", "Monday 8:00", "UTC"), "overlaps"},
		{of("Saturday 24:00", "Sunday 9:00", "UTC", "Sunday 0:00", "Sunday 1:00", "UTC"), "overlaps"},
		{of("2026-12-24 0:00", "2026-12-26 0:00", "UTC", "2026-12-25 24:00", "2026-12-27 0:00", "UTC"), ""},
		{of("2026-12-24 0:00", "2026-12-26 0:00", "UTC", "2026-12-25 23:59", "2026-12-27 0:00", "UTC"), "overlaps"},
		{of("Monday 0:00", "Friday 0:00", "UTC", "Friday 0:00", "Monday 0:00", "UTC"), "leave no time of the week"},
		{of("Monday 0:00", "Saturday 0:00", "UTC", "Friday 0:00", "Tuesday 0:00", "Asia/Tokyo"), "leave no time of the week"},
		{of("Monday 0:00", "Friday 0:00", "UTC", "Friday 0:00", "Sunday 23:59", "UTC"), ""},
	} {
		got := ""
		if err := test.windows.Check(); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) || got != "" && test.want == "" {
			t.Errorf("%v: %q, want %q", test.windows, got, test.want)
		}
	}
}

// TestAt checks freezes by their text.
func TestAt(t *testing.T) {
	weekend := windowOf(t, "Friday 17:00", "Monday 8:00", "Europe/Berlin", "weekend")
	holiday := windowOf(t, "2026-12-24 12:00", "2026-12-26 24:00", "America/New_York", "holidays")
	for _, test := range []struct{ at, want string }{
		{"2026-11-27T15:59:59Z", ""},
		{"2026-11-27T16:00:00Z", "until 2026-11-30T08:00:00+01:00 (Europe/Berlin): weekend"},
		{"2026-11-30T06:59:59Z", "until 2026-11-30T08:00:00+01:00 (Europe/Berlin): weekend"},
		{"2026-11-30T07:00:00Z", ""},
		{"2026-12-24T16:59:00Z", ""},
		{"2026-12-24T17:00:00Z", "until 2026-12-28T08:00:00+01:00 (Europe/Berlin): holidays"}, // with the weekend
		{"2026-12-26T12:00:00Z", "until 2026-12-28T08:00:00+01:00 (Europe/Berlin): weekend"},
		{"2026-03-29T12:00:00Z", "until 2026-03-30T08:00:00+02:00 (Europe/Berlin): weekend"},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s := (Windows{weekend, holiday}).At(at); s != nil {
			got = s.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.at, got, test.want)
		}
	}
}

// zones have clocks that are set by an hour, by half an hour, by two hours, at midnight, for a month, and by a day.
var zones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "America/Havana", "Asia/Beirut",
	"America/Santiago", "Africa/Casablanca", "America/St_Johns", "Asia/Kathmandu", "UTC",
}

// changes returns the times of some years at which the clocks of a zone are set.
func changes(zone *time.Location) (list []time.Time) {
	for at := time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC); ; {
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() || end.Year() > 2028 {
			return append(list, time.Date(2026, 5, 5, 5, 5, 0, 0, time.UTC))
		}
		if list = append(list, end); end.Year() < 2026 {
			list = list[:0]
		}
		at = end
	}
}

// TestAgainstMinutes compares random windows with a model that looks at the clock of a zone each minute, in the weeks
// around each change of the clocks.
func TestAgainstMinutes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	compared, frozen := 0, 0
	for _, name := range append(zones, "Pacific/Apia") {
		zone, err := ZoneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		times := changes(zone)
		if name == "Pacific/Apia" { // which has skipped a day
			times = []time.Time{time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC)}
		}
		for _, change := range times {
			look := newLook(change.In(zone))
			for range 6 {
				w := nearWindow(random, change.In(zone))
				if w.Check() != nil {
					continue
				}
				n := look.compare(t, w)
				compared, frozen = compared+1, frozen+n
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d windows, %d frozen minutes", compared, frozen)
	if compared < 250 || frozen == 0 {
		t.Errorf("%d windows are compared, %d minutes are frozen", compared, frozen)
	}
}

// nearWindow returns a random window that begins or ends near a change of the clocks.
func nearWindow(random *rand.Rand, change time.Time) Window {
	moment := func(weekly bool) Moment {
		// Also times that the clock skips or shows twice, which an offset of the other side of the change has.
		at := change.Add(time.Duration(random.IntN(5*60)-150) * time.Minute)
		if random.IntN(3) == 0 {
			at = change.Add(time.Duration(random.IntN(4*24*60)-2*24*60) * time.Minute)
		}
		_, offset := change.Add(-time.Hour).Zone()
		wall := at.UTC().Add(time.Duration(offset) * time.Second)
		m := Moment{Minute: wall.Hour()*60 + wall.Minute()}
		if weekly {
			m.Weekly, m.Weekday = true, wall.Weekday()
		} else {
			m.Date = wall.Format(time.DateOnly)
		}
		return m
	}
	weekly := random.IntN(2) == 0
	return Window{From: moment(weekly), To: moment(weekly), Zone: change.Location()}
}

// look has what the clock of a zone shows, for each minute of four weeks around a change of the clocks.
type look struct {
	change time.Time
	begin  time.Time
	shown  []int // in minutes since 1970
}

func newLook(change time.Time) look {
	l := look{change: change, begin: change.Add(-2 * week).Truncate(time.Minute)}
	for i := range int(4 * week / time.Minute) {
		at := l.begin.Add(time.Duration(i) * time.Minute)
		year, month, date := at.Date()
		l.shown = append(l.shown, minutesOf(time.Date(year, month, date, at.Hour(), at.Minute(), 0, 0, time.UTC)))
	}
	return l
}

func minutesOf(wall time.Time) int { return int(wall.Unix() / 60) }

// model says for each minute of a look whether a window has it.
type model struct {
	look
	in []bool
}

// of returns the model of a window: the minutes from the first at which the clock shows at least the begin, to the last
// at which it shows less than the end.
func (l look) of(w Window) model {
	m := model{l, make([]bool, len(l.shown))}
	mark := func(from, to time.Time) {
		since, until := -1, -1
		for i, is := range l.shown {
			if since < 0 && is >= minutesOf(from) {
				since = i
			}
			if is < minutesOf(to) {
				until = i
			}
		}
		if since < 0 || until == len(l.shown)-1 {
			return // outside of the look
		}
		for i := since; i <= until; i++ {
			m.in[i] = true
		}
	}
	if !w.From.Weekly {
		mark(w.From.wall(), w.To.wall())
		return m
	}
	for d := range 30 {
		from := l.begin.UTC().Truncate(day).AddDate(0, 0, d)
		to := from
		for to.Weekday() != w.To.Weekday {
			to = to.AddDate(0, 0, 1)
		}
		if from.Weekday() == w.From.Weekday {
			mark(from.Add(time.Duration(w.From.Minute)*time.Minute), to.Add(time.Duration(w.To.Minute)*time.Minute))
		}
	}
	return m
}

func (m model) frozen(at time.Time) bool { return m.in[at.Sub(m.begin)/time.Minute] }

// compare compares a window with the model: for each minute of half a day, and for a part of the minutes of six days.
// compare returns the number of frozen minutes.
func (l look) compare(t *testing.T, w Window) (frozen int) {
	t.Helper()
	model := l.of(w)
	for minute := -3 * 24 * 60; minute < 3*24*60; minute++ {
		if minute%17 != 0 && (minute < -6*60 || minute > 6*60) {
			continue
		}
		at := l.change.Add(time.Duration(minute) * time.Minute)
		s := Windows{w}.At(at)
		if want := model.frozen(at); want != (s != nil) {
			t.Errorf("%s from %s to %s: frozen at %s (%s): %t, want %t", w.Zone, w.From, w.To, at.UTC(), at.In(w.Zone), s != nil, want)
			return frozen
		}
		if s == nil {
			continue
		}
		frozen++
		if !model.frozen(s.Until.Add(-time.Minute)) || model.frozen(s.Until) || !model.frozen(s.Since) || model.frozen(s.Since.Add(-time.Minute)) || s.Since.After(at) {
			t.Errorf("%s from %s to %s: at %s it is %+v", w.Zone, w.From, w.To, at.UTC(), s)
			return frozen
		}
	}
	return frozen
}

// TestGapsAndOverlaps checks windows that begin or end at a time that the clock skips, or shows twice.
func TestGapsAndOverlaps(t *testing.T) {
	for _, test := range []struct{ name, from, to, since, until string }{
		{"the begin is skipped", "2026-03-29 2:30", "2026-03-29 12:00", "2026-03-29T01:00:00Z", "2026-03-29T10:00:00Z"},
		{"the end is skipped", "2026-03-28 12:00", "2026-03-29 2:30", "2026-03-28T11:00:00Z", "2026-03-29T01:00:00Z"},
		{"both are skipped", "2026-03-29 2:15", "2026-03-29 2:45", "", ""},
		{"the begin comes twice", "2026-10-25 2:30", "2026-10-25 12:00", "2026-10-25T00:30:00Z", "2026-10-25T11:00:00Z"},
		{"the end comes twice", "2026-10-24 12:00", "2026-10-25 2:30", "2026-10-24T10:00:00Z", "2026-10-25T01:30:00Z"},
		{"both come twice", "2026-10-25 2:15", "2026-10-25 2:45", "2026-10-25T00:15:00Z", "2026-10-25T01:45:00Z"},
		{"the end is the change", "2026-10-25 1:00", "2026-10-25 2:00", "2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z"},
	} {
		w := windowOf(t, test.from, test.to, "Europe/Berlin", "")
		p := w.near(time.Now().In(w.Zone))[0]
		since, until := p.since.UTC().Format(time.RFC3339), p.until.UTC().Format(time.RFC3339)
		if test.since == "" && !p.since.Before(p.until) {
			since, until = "", ""
		}
		if since != test.since || until != test.until {
			t.Errorf("%s: from %s until %s, want from %s until %s", test.name, since, until, test.since, test.until)
		}
	}
}
