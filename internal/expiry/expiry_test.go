package expiry

import (
	"testing"
	"time"
)

func TestSoon(t *testing.T) {
	const day = 24 * time.Hour
	from := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ valid, before time.Duration }{
		{10 * 365 * day, 14 * day},
		{90 * day, 14 * day},
		{84 * day, 14 * day},
		{30 * day, 5 * day},
		{day, 4 * time.Hour},
		{time.Hour, 10 * time.Minute},
		{0, 0},
	} {
		until := from.Add(c.valid)
		if got := until.Sub(Validity{from, until}.Soon()); got != c.before {
			t.Errorf("valid for %v: soon is the last %v, want %v", c.valid, got, c.before)
		}
	}
	// The period of a certificate may be longer than the longest Duration.
	forever := from.AddDate(9000, 0, 0)
	if got := forever.Sub(Validity{from, forever}.Soon()); got != 14*day {
		t.Errorf("valid for 9000 years: soon is the last %v", got)
	}
	// The end of a certificate may be before its beginning.
	if got := (Validity{from, from.Add(-time.Hour)}).Soon(); got.Before(from.Add(-time.Hour)) {
		t.Errorf("the end is before the beginning: soon is from %v", got)
	}
}
