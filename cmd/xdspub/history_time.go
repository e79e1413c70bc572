package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"xdspub/cmd/settings"
)

// timeFormat names the time zone.
const timeFormat = "2006-01-02 15:04:05 MST"

// timeForms is the remedy for a time that timeOf can't read.
const timeForms = "write a time such as 14:00, yesterday 14:00, 2026-03-04 14:00, 2026-03-04T14:00:00Z, or 2h for two hours ago"

// timeOf returns the past time that a setting names. A time without a zone is in the zone of this machine.
func timeOf(of settings.Value[string], now time.Time) (time.Time, error) {
	t, ok := parseWhen(of.Value, now)
	switch {
	case !ok:
		return t, of.Invalid(of.Value, timeForms)
	case t.After(now):
		return t, of.Invalid(of.Value, fmt.Sprintf("%s is in the future, now is %s: write yesterday %[3]s for the day before", t.Format(timeFormat),
			now.Format(timeFormat), of.Value))
	}
	return t, nil
}

// parseWhen reads a time: RFC 3339, a date, a time of the day, today or yesterday with a time of the day, or a duration
// ago.
func parseWhen(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.In(now.Location()), true
	}
	if ago, ok := durationOf(text); ok {
		return now.Add(-ago), true
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, true
		}
	}
	day := now
	first, clock, _ := strings.Cut(text, " ")
	switch first {
	case "yesterday":
		day = now.AddDate(0, 0, -1)
	case "today":
	default:
		clock = text
	}
	if clock = strings.TrimSpace(clock); clock == "" && text != "" {
		clock = "00:00"
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, clock); err == nil {
			return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), true
		}
	}
	return time.Time{}, false
}

// durationOf reads a duration that is not negative, such as 90m, 2h or 3d.
func durationOf(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0 && text != "0"
}
