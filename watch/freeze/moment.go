package freeze

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Moment is a time that a clock shows: once, or each week.
type Moment struct {
	Weekly  bool
	Weekday time.Weekday // if Weekly
	Date    string       // such as 2026-12-24; empty if Weekly
	Minute  int          // of the day, 24 * 60 at most
}

// Pattern is the usual form of a Moment as a regular expression, for a JSON Schema.
const Pattern = `^((Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day|Sun|Mon|Tue|Wed|Thu|Fri|Sat|[0-9]{4}-[0-9]{2}-[0-9]{2})` +
	` +(([01]?[0-9]|2[0-3]):[0-5][0-9]|24:00)$`

var form = regexp.MustCompile(`^([A-Za-z]+|[0-9]{4}-[0-9]{2}-[0-9]{2}) +([0-9]{1,2}):([0-9]{2})$`)

// errForm says how to write a Moment.
var errForm = errors.New("write a weekday and a time such as Friday 17:00, or a date and a time such as 2026-12-24 17:00")

// shortName is the number of letters of a short name of a weekday, such as Fri.
const shortName = 3

// ParseMoment reads a Moment such as Friday 17:00, Fri 17:00 or 2026-12-24 17:00.
func ParseMoment(text string) (m Moment, err error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return m, errForm
	}
	hour, _ := strconv.Atoi(parts[2])
	minute, _ := strconv.Atoi(parts[3])
	if m.Minute = hour*60 + minute; minute > 59 || m.Minute > 24*60 {
		return m, fmt.Errorf("there is no time %s:%s: a day has the times 0:00 to 24:00", parts[2], parts[3])
	}
	if date, err := time.Parse(time.DateOnly, parts[1]); err == nil {
		m.Date = date.Format(time.DateOnly)
		return m, nil
	}
	name := strings.ToLower(parts[1])
	i := slices.IndexFunc(weekdays(), func(day string) bool { return name == day || name == day[:shortName] })
	switch {
	case i >= 0:
		m.Weekly, m.Weekday = true, time.Weekday(i)
		return m, nil
	case name[0] >= '0' && name[0] <= '9':
		return m, fmt.Errorf("there is no date %s", parts[1])
	}
	return m, errForm
}

// String returns the text that ParseMoment reads.
func (m Moment) String() string {
	of := m.Date
	if m.Weekly {
		of = m.Weekday.String()
	}
	return fmt.Sprintf("%s %d:%02d", of, m.Minute/60, m.Minute%60)
}

// wall returns the time of a date as if the clock showed UTC.
func (m Moment) wall() time.Time {
	date, err := time.Parse(time.DateOnly, m.Date)
	if err != nil {
		panic(fmt.Sprintf("%q is no date", m.Date)) // ParseMoment has read it
	}
	return date.Add(time.Duration(m.Minute) * time.Minute)
}

// minuteOfWeek returns the minutes since Sunday 0:00.
func (m Moment) minuteOfWeek() int { return int(m.Weekday)*24*60 + m.Minute }
